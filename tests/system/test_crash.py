"""The real daemon, killed at hundreds of points, goes on without a hand and loses nothing."""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from cronstable.state.instants import from_text
from cronstable.state.store import StoreSettings, open_store
from tests.system.harness import CHECKOUT
from tests.system.proc import together

CONFIG = """\
state:
  path: {work}/state
defaults:
  catchupLimit: 100000
  captureStdout: true
jobs:
  - name: quick
    schedule: "* * * * * * *"
    command: ["/bin/echo", "quick"]
    onMissed: run-all
  - name: slow
    schedule: "*/2 * * * * * *"
    command: ["/bin/sleep", "0.4"]
    onMissed: run-all
  - name: once
    schedule: "*/3 * * * * * *"
    command: ["/bin/true"]
    onMissed: run-once
  - name: plain
    schedule: "* * * * * * *"
    command: ["/bin/echo", "plain"]
    archiveOutput: true
  - name: failing
    schedule: "*/4 * * * * * *"
    command: ["/bin/false"]
    onFailure:
      retry:
        maximumRetries: 3
        initialDelay: 0.2
        maximumDelay: 1
        backoffMultiplier: 1
  - name: boot
    schedule: "@reboot"
    command: ["/bin/true"]
"""
RUN_ALL = ("quick", "slow")
CALLS = 5000
"""About as many calls as a life makes that is not cut short."""


def points(rng: random.Random) -> list[str]:
    """Return where lives are killed: the store's own points, and calls anywhere."""
    found = [
        f"{point}:{number}"
        for point in ("record.begin", "record.written", "record.renamed", "record.synced")
        for number in (*range(1, 12), 14, 17, 21)
    ]
    found += [f"prune.removed:{number}" for number in (1, 2, 3, 5)]
    found += [f"call:{int(CALLS ** rng.uniform(0.55, 1.0))}" for _ in range(60)]
    found += [f"call:{rng.randint(200, CALLS)}" for _ in range(80)]
    found += [f"time:{rng.uniform(0.02, 1.8):.3f}" for _ in range(12)]
    rng.shuffle(found)
    return found


class Lives:
    """What the lives of one store have told."""

    def __init__(self, path: Path) -> None:
        self.events = [json.loads(line) for line in path.read_text().splitlines()]

    def of(self, what: str) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, event in enumerate(self.events):
            if event["what"] == what:
                yield number, event

    def starts(self, job: str) -> dict[Any, list[tuple[int, dict[str, Any]]]]:
        """Return the starts of each (slot, attempt) of a job, boot runs as one."""
        found: dict[Any, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for number, event in self.of("started"):
            if event["job"] == job:
                found[(event["slot"], event["attempt"])].append((number, event))
        return found

    def written(self, stream: str) -> list[tuple[int, dict[str, Any]]]:
        return [(n, event) for n, event in self.of("written") if event["stream"] == stream]


class CrashTests(TestCase):
    """Two hundred deaths, and a life after each."""

    timeout = 600

    async def test_killed_anywhere(self) -> None:
        """
        No record that was in place is lost, no owed slot is, nothing runs twice that was recorded.

        Attempts of retries and boot runs are noted before they start, so that they never run
        twice.  Slot book and ledger agree in each life; no record is ever torn.
        """
        rng = random.Random(11)
        chosen = points(rng)
        self.assertGreaterEqual(len(chosen), 200)
        halves = [chosen[0::2], chosen[1::2]]
        homes = [Path(self.mktemp()).resolve() for _ in halves]
        await together(*(self.lives(home, half) for home, half in zip(homes, halves, strict=True)))
        for home in homes:
            self.check(home)

    async def lives(self, home: Path, specs: Sequence[str]) -> None:
        """Live through C{specs} in C{home}, then long enough to catch up with everything."""
        home.mkdir(parents=True)
        (home / "config.yaml").write_text(CONFIG.format(work=home))
        said = await run(home, [*specs, "end", "end"])
        self.assertNotIn("Traceback", said)
        ended = [event["status"] for _, event in Lives(home / "log").of("died")]
        self.assertEqual(ended, [-9] * len(specs) + [0, 0])

    def check(self, home: Path) -> None:
        lives = Lives(home / "log")
        self.assertEqual(list(lives.of("unaccounted")), [])
        self.assertEqual([event["unaccounted"] for _, event in lives.of("ended")], [0, 0])
        reached = len(list(lives.of("born"))) - len(list(lives.of("not reached")))
        self.assertGreater(reached, 80, "most of the points are to be reached")
        self.check_records(home, lives)
        for job in RUN_ALL:
            self.check_owed(lives, job)
        self.check_repeats(lives)
        self.check_once(lives)

    def check_records(self, home: Path, lives: Lives) -> None:
        """Every row that was in place is there, and the newest of each other stream or newer."""
        store = open_store(StoreSettings(str(home / "state")), Clock())
        streams = {event["stream"] for _, event in lives.of("written")}
        for stream in streams:
            there = [stem for stem, _ in store.records.items(stream)]
            told = [event["stem"] for _, event in lives.written(stream)]
            if stream.startswith(("runs/", "logs/")):
                self.assertEqual(set(told) - set(there), set(), stream)
            elif stream != "meta":
                self.assertGreaterEqual(max(there), max(told), stream)
        self.assertEqual(os.listdir(home / "state" / "default" / "quarantine"), [])

    def check_owed(self, lives: Lives, job: str) -> None:
        """
        Every slot of a run-all job was started: from its first row to the last life's birth.

        What the ledger counts from is the newest finish: a slot that was due and not started yet
        when an older run's row was written, just before a kill, is behind it.
        """
        starts = {slot for slot, _ in lives.starts(job)}
        finishes = [
            from_text(event["data"].get("finished_at")) or 0.0
            for _, event in lives.written(f"runs/{job}")
        ]
        births = [event["now"] for _, event in lives.of("born") if event["spec"] == "end"]
        step = 2 if job == "slow" else 1
        first = math.ceil(min(each for each in finishes if each) / step) * step
        lost = sorted(set(range(first, int(births[0]), step)) - starts)
        unexcused = [slot for slot in lost if not any(0 <= f - slot < 1 for f in finishes)]
        self.assertEqual(unexcused, [], f"{job} lost slots")
        self.assertLessEqual(len(lost), 2, f"{job}: {lost} were behind a late row")

    def check_repeats(self, lives: Lives) -> None:
        """A slot runs again only if the end of its run was not on record."""
        for job in ("quick", "slow", "once", "plain"):
            rows = {
                event["data"]["started_at"]: number
                for number, event in lives.written(f"runs/{job}")
                if event["data"].get("started_at") and "finished_at" in event["data"]
            }
            checkpoints = lives.written(f"catchup/{job}")
            for (slot, _), starts in lives.starts(job).items():
                for (first, event), (second, again) in zip(starts, starts[1:], strict=False):
                    self.assertNotEqual(event["life"], again["life"], f"{job} {slot}")
                    row = rows.get(text(event["at"]), second)
                    if event["cause"] == "catchup":
                        # What closes the window is the checkpoint that comes after the row.
                        row = min([n for n, _ in checkpoints if n > row], default=second)
                    same = [n for n in (row,) if lives.events[n]["life"] == event["life"]]
                    known = any(first < n < second for n in same)
                    self.assertFalse(known, f"{job} {slot} ran again after its row")

    def check_once(self, lives: Lives) -> None:
        """What is noted before it starts never starts twice."""
        for job in ("failing", "boot"):
            for (slot, attempt), starts in lives.starts(job).items():
                if attempt or job == "boot":
                    self.assertEqual(len(starts), 1, f"{job} {slot} #{attempt}")
        self.assertLessEqual(len(lives.starts("boot")), 1)
        attempts = Counter(attempt for _, attempt in lives.starts("failing"))
        self.assertGreater(attempts[1], 0)


class Clock:
    """What a store asks of a clock to be read."""

    def seconds(self) -> float:
        return 0.0

    def now(self) -> float:
        return 4e9

    def awake_and_asleep(self) -> float:
        return 0.0


def text(at: float) -> str:
    from cronstable.state.instants import to_text

    return to_text(at)


class _Child(ProcessProtocol):
    def __init__(self) -> None:
        self.done: Deferred[str] = Deferred()
        self._said = b""

    def errReceived(self, data: bytes) -> None:  # noqa: N802
        self._said = (self._said + data)[-100_000:]

    def processEnded(self, reason: Failure) -> None:  # noqa: N802
        ended: Any = reason.value
        said = self._said.decode("utf-8", "replace")
        if ended.exitCode == 0:
            self.done.callback(said)
        else:
            self.done.errback(AssertionError(said))


def run(home: Path, specs: Sequence[str]) -> Deferred[str]:
    """Live through C{specs}; fire with the end of what was said on stderr."""
    from twisted.internet import reactor

    spawner: Any = reactor
    child = _Child()
    argv = [sys.executable, "-m", "tests.system.crashing", str(home / "config.yaml")]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    spawner.spawnProcess(
        child, argv[0], [*argv, str(home / "log"), *specs], env=environment, path=str(home)
    )
    return child.done
