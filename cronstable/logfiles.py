"""
The daemon's own log files, kept at their paths when somebody moves or removes them.

docs/operations.md, "Logs", tells an operator what to expect.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable

import attrs

log = logging.getLogger("cronstable.config")


SAY_AGAIN = 60.0
"""Seconds after which trouble with one file is told again."""


@attrs.define
class _Away:
    """A handler whose file could not be opened, and what writes in its place."""

    handler: logging.FileHandler
    stand_in: logging.Handler
    loggers: list[logging.Logger]


@attrs.define(eq=False)
class _Guard:
    """What a handler calls whose file took no line; Python's own prints a traceback each time."""

    handler: logging.FileHandler
    stand_in: logging.Handler
    said_at: float = float("-inf")

    def __call__(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            logging.Handler.handleError(self.handler, record)
            return
        self.stand_in.setFormatter(self.handler.formatter)
        if abs(record.created - self.said_at) >= SAY_AGAIN:
            self.said_at = record.created
            self.stand_in.handle(_told(self.handler.baseFilename, error))
        self.stand_in.handle(record)


def _told(path: str, error: OSError) -> logging.LogRecord:
    text = "cannot write to the log file %s: %s; its lines go to stderr until it takes them"
    return log.makeRecord(log.name, logging.WARNING, __file__, 0, text, (path, error), None)


class LogFiles:
    """
    Opens the files of C{logging:} anew when asked, and when a path names another file.

    A line is written to the file as it was named before, or to the one that has the name now,
    never to neither.  C{stand_in} makes the handler that writes while a file cannot be opened or
    takes nothing.
    """

    def __init__(self, stand_in: Callable[[], logging.Handler]) -> None:
        self._stand_in = stand_in
        self._away: list[_Away] = []

    def guard(self) -> None:
        """Let lines that a file does not take, as on a full disk, be written in another place."""
        for handler in _files():
            if not isinstance(handler.handleError, _Guard):
                handler.handleError = _Guard(handler, self._stand_in())  # type: ignore[method-assign]

    def reopen(self) -> None:
        """Open every file anew, whether it seems to have moved or not."""
        self._return()
        for handler, loggers in _files().items():
            self._open(handler, loggers)

    def look(self) -> None:
        """Open anew what has moved or gone."""
        self._return()
        self.guard()
        for handler, loggers in _files().items():
            if _moved(handler):
                self._open(handler, loggers)

    def _open(self, handler: logging.FileHandler, loggers: list[logging.Logger]) -> None:
        try:
            _open_anew(handler)
        except OSError as error:
            stand_in = self._stand_in()
            stand_in.setFormatter(handler.formatter)
            stand_in.setLevel(handler.level)
            _replace(loggers, handler, stand_in)
            self._away.append(_Away(handler, stand_in, loggers))
            log.warning(
                "cannot open the log file %s: %s; its lines go to stderr until it can be opened",
                handler.baseFilename,
                error,
            )

    def _return(self) -> None:
        away, self._away = self._away, []
        for each in away:
            # A changed section has put other handlers there.
            if not any(each.stand_in in logger.handlers for logger in each.loggers):
                each.handler.close()
                continue
            try:
                _open_anew(each.handler)
            except OSError:
                self._away.append(each)
            else:
                _replace(each.loggers, each.stand_in, each.handler)


def _files() -> dict[logging.FileHandler, list[logging.Logger]]:
    """Return the handlers that have a file open, and the loggers that use each."""
    found: dict[logging.FileHandler, list[logging.Logger]] = {}
    root = logging.getLogger()
    for logger in (root, *root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.FileHandler) and handler.stream is not None:
                found.setdefault(handler, []).append(logger)  # type: ignore[arg-type]
    return found


def _moved(handler: logging.FileHandler) -> bool:
    try:
        now = os.stat(handler.baseFilename)
    except OSError:
        return True
    return handler.stream is None or not os.path.samestat(now, os.fstat(handler.stream.fileno()))


def _open_anew(handler: logging.FileHandler) -> None:
    """Go on in the file that the path names, at its end; raises OSError and goes on as before."""
    fresh = open(  # noqa: SIM115 - the handler closes it
        handler.baseFilename, "a", encoding=handler.encoding, errors=handler.errors
    )
    handler.acquire()
    try:
        before, handler.stream = handler.stream, fresh
    finally:
        handler.release()
    if before is not None:
        with contextlib.suppress(OSError):
            before.close()


def _replace(loggers: list[logging.Logger], old: logging.Handler, new: logging.Handler) -> None:
    for logger in loggers:
        if old in logger.handlers:
            logger.removeHandler(old)
            logger.addHandler(new)
