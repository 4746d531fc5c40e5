"""Questions about many jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.runs import reading
from cronstable.runs.reading import Open, for_each


class Core:
    """A store in which each reading takes a while."""

    def __init__(self) -> None:
        self.now = 0.0

    def seconds(self) -> float:
        return self.now


@attrs.define
class Asked:
    """A store service that answers at once, and counts how often it is asked."""

    config: StateConfig | None = attrs.field(factory=lambda: StateConfig(path="/state"))
    times: int = 0
    core: Core = attrs.field(factory=Core)

    def ask(self, question: Callable[[Any], Any]) -> Deferred[Any]:
        self.times += 1
        return succeed(question(self.core))


class ReadingTests(SynchronousTestCase):
    """How many questions there are, and what becomes of the names."""

    def setUp(self) -> None:
        self.store: Any = Asked()
        self.found: list[str] = []
        self.names = Open.of("abcde")

    def read(self, store: Any, name: str) -> str:
        store.now += reading.PORTION / 2
        if name == "c":
            raise OSError("unreadable")
        return name.upper()

    def ask(self) -> None:
        """Ask about all names; the error about one of them is raised at the end."""

        def found(name: str, value: str) -> None:
            self.found.append(value)

        done = Deferred.fromCoroutine(for_each(self.store, self.names, self.read, found))
        self.failureResultOf(done, OSError)

    def test_in_portions(self) -> None:
        """One question is about as many names as can be read in its time."""
        self.ask()
        self.assertEqual((self.found, self.store.times), (["A", "B", "D", "E"], 3))
        self.assertEqual(list(self.names), ["c"])

    def test_rate_limit(self) -> None:
        """Where operations are counted each name is one."""
        self.store.config = StateConfig(path="/state", max_ops_per_second=0.5)
        self.ask()
        self.assertEqual((self.found, self.store.times), (["A", "B", "D", "E"], 5))
        self.assertEqual(list(self.names), ["c"])
