"""
Where the daemon's own log goes besides stderr: what C{logging:} says, and what Twisted logs.

Every logger is a standard one, so a C{logging:} section is a plain dictConfig.

docs/operations.md, "Logs", tells an operator what to expect.
"""

from __future__ import annotations

import logging
import logging.config
import sys
from collections.abc import Callable, Mapping
from typing import Any

from twisted.logger import ILogObserver, LogLevel, STDLibLogObserver, globalLogPublisher
from zope.interface import implementer

from cronstable.runs.mirror import Mirror

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


class MirroredHandler(logging.Handler):
    """
    Writes the log where output of jobs to stderr is mirrored, in order with it.

    A reader of stderr that is stuck never holds up the daemon: lines that find no room are
    dropped and counted, and the count is logged when there is room again.
    """

    def __init__(self, mirror: Mirror) -> None:
        super().__init__()
        self._mirror = mirror
        self._full = False
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Hand one line on, or count it."""
        if self._full:
            self._dropped += 1
            return
        try:
            line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        except Exception:
            self.handleError(record)
            return
        if not self._mirror.write(2, line):
            self._full = True
            self._mirror.when_room(2, self._room_again)

    def _room_again(self) -> None:
        self._full = False
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            log.warning("%d lines of this log found no room and were dropped", dropped)


def mirror_the_log(mirror: Mirror) -> Callable[[], None]:
    """
    Send what the root logger writes to stderr through C{mirror}; return what ends that.
    """
    root = logging.getLogger()
    # twistd puts something else in the place of sys.stderr.
    streams = (sys.stderr, sys.__stderr__)
    ours: list[tuple[logging.Handler, logging.Handler]] = []
    for handler in tuple(root.handlers):
        if type(handler) is logging.StreamHandler and handler.stream in streams:
            mirrored = MirroredHandler(mirror)
            mirrored.setFormatter(handler.formatter)
            mirrored.setLevel(handler.level)
            root.removeHandler(handler)
            root.addHandler(mirrored)
            ours.append((handler, mirrored))

    def end() -> None:
        for handler, mirrored in ours:
            if mirrored in root.handlers:
                root.removeHandler(mirrored)
                root.addHandler(handler)

    return end


class LoggingSection:
    """Applies the C{logging:} section, and applies it again only when it has changed."""

    def __init__(self) -> None:
        self._applied: Mapping[str, Any] | None = None
        self._trouble = ""

    def apply(self, section: Mapping[str, Any] | None) -> bool:
        """
        Put C{section} in force; return whether that changed anything.

        What is wrong with a broken one is an ERROR, once, and the old logging stays.
        """
        if section is None or section == self._applied:
            return False
        handlers = list(logging.getLogger().handlers)
        level = logging.getLogger().level
        try:
            logging.config.dictConfig(_plain(section))
        except Exception as error:
            _restore(handlers, level)
            if self._trouble != (trouble := _told(error)):
                self._trouble = trouble
                log.error(
                    "Error in the logging section: %s; it must follow the dictionary schema of"
                    " Python's logging.config, and is tried again each minute",
                    trouble,
                )
            return False
        self._applied, self._trouble = section, ""
        return True


def _told(error: Exception) -> str:
    # dictConfig says which handler; only the cause says why.
    return f"{error}: {error.__cause__}" if error.__cause__ else str(error)


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
