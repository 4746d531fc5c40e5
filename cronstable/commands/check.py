"""``--validate-config`` and ``--job-set-id``: a full load that starts and writes nothing."""

from __future__ import annotations

import logging

from cronstable.config.errors import ConfigError
from cronstable.config.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cronstable.config.load import Loaded

log = logging.getLogger("cronstable")


def validate(path: str) -> int:
    """Log whether the configuration at C{path} is valid; return 0 if so, else 1."""
    if _load(path) is None:
        return 1
    log.info("Configuration is valid.")
    return 0


def print_job_set_id(path: str) -> int:
    """Print the fingerprint of the jobs at C{path}; 1 if the configuration is not valid."""
    loaded = _load(path)
    if loaded is None:
        return 1
    from cronstable.config.fingerprint import job_set_id

    print(job_set_id(loaded.config.jobs))
    return 0


def _load(path: str) -> Loaded | None:
    try:
        loaded = load(path)
    except ConfigError as error:
        log.error("Configuration error: %s", error)
        return None
    return loaded
