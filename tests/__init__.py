"""The tests of cronstable, laid out as the package is; run with trial."""
