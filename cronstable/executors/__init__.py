"""Where a run's process lives: launched, watched, ended, re-attached."""
