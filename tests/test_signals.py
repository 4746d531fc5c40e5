"""Signals, early ones too."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.signals import EarlySignals, Signals


class FakeReactor:
    """Calls at once what is to be called on its thread, unless it is C{busy}."""

    def __init__(self) -> None:
        self.busy = False
        self.waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def callFromThread(self, call: Callable[..., Any], *arguments: Any) -> None:  # noqa: N802
        self.waiting.append((call, arguments))
        if not self.busy:
            self.turn()

    def turn(self) -> None:
        waiting, self.waiting = self.waiting, []
        for call, arguments in waiting:
            call(*arguments)


class SignalsTests(SynchronousTestCase):
    """Handlers of this very process, all given back."""

    def setUp(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.calls: list[str] = []
        self.stops: list[float] = []
        self.clock = ManualClock()
        self.reactor = FakeReactor()
        self.signals = Signals(
            self.reactor, self.clock, self.stop, lambda: self.calls.append("reload")
        )

    def stop(self, when: float) -> None:
        self.calls.append("stop")
        self.stops.append(when)

    def test_calls(self) -> None:
        """SIGTERM and SIGINT ask to stop, SIGHUP to reload."""
        self.signals.install()
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        self.assertEqual(self.calls, ["reload", "stop", "stop"])

    def test_when_it_came(self) -> None:
        """A stop is told the moment of its signal, though its turn may come later."""
        self.signals.install()
        self.reactor.busy = True
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
            self.clock.advance(1)
        self.reactor.turn()
        self.assertEqual(self.stops, [0.0, 1.0])

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
