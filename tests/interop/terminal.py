"""A terminal program in a window of tmux: keys in, screen out."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, TestCase

COLUMNS, LINES = 160, 45
LOOK = 0.1
"""Seconds between two looks at the screen."""


class Terminal:
    """
    A window of 160 by 45 in which C{command} runs, with a server of its own.

    It is gone when C{test} ends, and what ran in it too.
    """

    def __init__(
        self, test: TestCase, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        program = shutil.which("tmux")
        if program is None:
            raise SkipTest("tmux is not installed")
        # The path of a socket must be short.
        self._home = Path(tempfile.mkdtemp(prefix="tmux-"))
        test.addCleanup(shutil.rmtree, self._home, True)
        self._tmux = [program, "-f", "/dev/null", "-S", str(self._home / "socket")]
        settings = {"HOME": str(self._home), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **environment}
        variables = [f"{name}={value}" for name, value in settings.items()]
        self._run(
            *("new-session", "-d", "-s", "window", "-x", str(COLUMNS), "-y", str(LINES)),
            *("env", *variables, *command),
        )
        test.addCleanup(self._run, "kill-server", check=False)
        self._run("set-option", "-g", "remain-on-exit", "on")

    async def keys(self, *keys: str) -> None:
        """Type C{keys}, each by its tmux name: C{r}, C{Enter}, C{Escape}, C{C-k}."""
        await deferToThread(self._run, "send-keys", "-t", "window", *keys)

    async def screen(self) -> str:
        """Return what is to be seen, without blanks at the ends of lines."""
        shown = await deferToThread(self._run, "capture-pane", "-p", "-t", "window")
        return "\n".join(line.rstrip() for line in str(shown).splitlines())

    async def wait_for(
        self, pattern: str, timeout: float = 15.0, *, gone: bool = False
    ) -> re.Match[str]:
        """
        Wait until C{pattern} is to be seen (or is not, if C{gone}), and return its match.

        Fails with the screen as it is then.
        """
        from twisted.internet import reactor

        clock: Any = reactor
        end = clock.seconds() + timeout
        while True:
            screen = await self.screen()
            match = re.search(pattern, screen, re.MULTILINE)
            if gone and match is None:
                match = re.search("", screen)
            elif gone:
                match = None
            if match is not None:
                return match
            if clock.seconds() >= end:
                wanted = "no more" if gone else "to be seen"
                raise AssertionError(f"{pattern!r} is not {wanted} after {timeout} s:\n{screen}")
            await deferLater(clock, LOOK)

    def _run(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            [*self._tmux, *words], check=check, capture_output=True, text=True, timeout=30
        )
        return done.stdout
