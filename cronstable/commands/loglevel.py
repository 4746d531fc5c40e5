"""Log levels by name, and logging as it is before a configuration says otherwise."""

from __future__ import annotations

LEVELS = "DEBUG, INFO, WARNING, ERROR or CRITICAL"

_NUMBERS = {
    "DEBUG": 10,
    "INFO": 20,
    "WARN": 30,
    "WARNING": 30,
    "ERROR": 40,
    "CRITICAL": 50,
    "FATAL": 50,
}


def level_number(name: str) -> int:
    """
    Return the number that the logging package gives the level called C{name}, in any case.

    Raises ValueError, whose text names the choices, for any other text.
    """
    try:
        return _NUMBERS[name.upper()]
    except KeyError:
        raise ValueError(f"invalid log level {name!r} (use {LEVELS})") from None


def log_to_stderr(level: int) -> None:
    """Log what is at least as severe as C{level} on stderr, a line as LEVEL:logger:message."""
    import logging

    logging.basicConfig(level=level, format="%(levelname)s:%(name)s:%(message)s", force=True)
