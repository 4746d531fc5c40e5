"""Signals, early ones too."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.signals import EarlySignals, Signals


class FakeReactor:
    """Calls at once what is to be called on its thread."""

    def callFromThread(self, call: Callable[[], Any]) -> None:  # noqa: N802
        call()


class SignalsTests(SynchronousTestCase):
    """Handlers of this very process, all given back."""

    def setUp(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.calls: list[str] = []
        self.signals = Signals(
            FakeReactor(), lambda: self.calls.append("stop"), lambda: self.calls.append("reload")
        )

    def test_calls(self) -> None:
        """SIGTERM and SIGINT ask to stop, SIGHUP to reload."""
        self.signals.install()
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        self.assertEqual(self.calls, ["reload", "stop", "stop"])

    def test_remove(self) -> None:
        """Whoever had a signal before has it again."""
        before = signal.getsignal(signal.SIGHUP)
        self.signals.install()
        self.signals.remove()
        self.assertEqual(signal.getsignal(signal.SIGHUP), before)

    def test_early_stop(self) -> None:
        """Before anything was started a stop is an end with status 0."""
        EarlySignals().install()
        for number in (signal.SIGTERM, signal.SIGINT):
            stop = self.assertRaises(SystemExit, os.kill, os.getpid(), number)
            self.assertEqual(stop.code, 0)

    def test_early_reload(self) -> None:
        """A reload that is asked for too early is done as soon as it can be."""
        EarlySignals().install()
        os.kill(os.getpid(), signal.SIGHUP)
        self.signals.install()
        self.assertEqual(self.calls, ["reload"])

    def test_no_early_reload(self) -> None:
        """Without such a request there is none."""
        EarlySignals().install()
        self.signals.install()
        self.assertEqual(self.calls, [])
