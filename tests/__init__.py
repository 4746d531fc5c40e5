"""The tests of cronstable, laid out as the package is; run with trial."""

import logging

# What a test makes the daemon log belongs to the test (assertLogs), not to the terminal.
logging.getLogger().addHandler(logging.NullHandler())
