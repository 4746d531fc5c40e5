"""A run's life: admission, launch, output, outcome, retry, history, slots."""
