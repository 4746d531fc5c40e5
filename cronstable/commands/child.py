"""Running a command to its end, whatever happens meanwhile, and telling how it ended."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
"""Signals that the command gets as well."""

BORNE = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to the command by itself."""


def run_child(command: Sequence[str]) -> int:
    """
    Run C{command} and return its exit status, 256-N after signal N.

    Signals that would end this process are passed on instead, so that it outlives the command.
    Raises OSError or ValueError if the command cannot be started.
    """
    import signal

    child = _Child()
    before: dict[Any, Any] = {}
    for name in (*PASSED_ON, *BORNE):
        number = getattr(signal, name, None)
        # What was ignored when we came stays ignored, as the command would have it.
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, child.pass_on if name in PASSED_ON else _bear)
    try:
        child.start(command)
        return os.waitstatus_to_exitcode(child.wait()) & 0xFF
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Child:
    def __init__(self) -> None:
        self._pid = 0
        self._waiting: list[int] = []

    def start(self, command: Sequence[str]) -> None:
        """Start the command with the signals that Python ignores at their defaults."""
        import signal

        ignored = [
            getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
        ]
        self._pid = os.posix_spawnp(command[0], list(command), os.environ, setsigdef=ignored)
        for number in self._waiting:
            self.pass_on(number, None)

    def wait(self) -> int:
        """Return the wait status of the command once it has ended."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return status

    def pass_on(self, number: int, frame: object) -> None:
        """Give the command a signal, now or as soon as it is there."""
        if not self._pid:
            self._waiting.append(number)
            return
        try:
            os.kill(self._pid, number)
        except OSError:
            pass  # It has just ended, or become somebody else.


def _bear(number: int, frame: object) -> None:
    """Do nothing: the command decides what becomes of it."""
