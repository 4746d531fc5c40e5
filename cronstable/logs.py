"""
Where the daemon's own log goes besides stderr: what C{logging:} says, and what Twisted logs.

Every logger is a standard one, so a C{logging:} section is a plain dictConfig.
"""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Mapping
from typing import Any

from twisted.logger import ILogObserver, LogLevel, STDLibLogObserver, globalLogPublisher
from zope.interface import implementer

log = logging.getLogger("cronstable.config")


@implementer(ILogObserver)
class TwistedToStandard:
    """Passes what Twisted itself logs to the standard logger C{twisted}, chatter at DEBUG."""

    def __init__(self) -> None:
        self._observer = STDLibLogObserver("twisted")

    def __call__(self, event: dict[str, Any]) -> None:
        if event.get("log_level") == LogLevel.info:
            event = {**event, "log_level": LogLevel.debug}
        self._observer(event)


def bridge_twisted() -> None:
    """Let what Twisted logs through the bridge, for a process that twistd did not start."""
    globalLogPublisher.addObserver(TwistedToStandard())


class LoggingSection:
    """Applies the C{logging:} section, and applies it again only when it has changed."""

    def __init__(self) -> None:
        self._applied: Mapping[str, Any] | None = None

    def apply(self, section: Mapping[str, Any] | None) -> None:
        """Put C{section} in force; a broken one is an ERROR and the old logging stays."""
        if section is None or section == self._applied:
            return
        handlers = list(logging.getLogger().handlers)
        level = logging.getLogger().level
        try:
            logging.config.dictConfig(_plain(section))
        except Exception as error:
            _restore(handlers, level)
            log.error(
                "Error in the logging section: %s; it must follow the dictionary schema of"
                " Python's logging.config, and is tried again",
                error,
            )
            return
        self._applied = section


def _restore(handlers: list[logging.Handler], level: int) -> None:
    root = logging.getLogger()
    for handler in tuple(root.handlers):
        if handler not in handlers:
            root.removeHandler(handler)
    for handler in handlers:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(level)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
