"""``--validate-config`` and ``--job-set-id``: a full load that starts and writes nothing."""

from __future__ import annotations

import logging
import os
import time

from cronstable.config.errors import ConfigError
from cronstable.config.load import Loaded, load

log = logging.getLogger("cronstable")
config_log = logging.getLogger("cronstable.config")


def validate(path: str) -> int:
    """Log whether the configuration at C{path} is valid; return 0 if so, else 1."""
    loaded = _load(path)
    if loaded is None:
        return 1
    log.info("Configuration is valid.")
    return 0


def print_job_set_id(path: str) -> int:
    """Print the fingerprint of the jobs at C{path}; 1 if the configuration is not valid."""
    loaded = _load(path)
    if loaded is None:
        return 1
    print(loaded.job_set_id)
    return 0


def _load(path: str) -> Loaded | None:
    try:
        loaded = load(path, environ=os.environ, now=time.time())
    except ConfigError as error:
        log.error("Configuration error: %s", error)
        return None
    for notice in loaded.notices:
        config_log.log(notice.level, "%s", notice.text)
    return loaded
