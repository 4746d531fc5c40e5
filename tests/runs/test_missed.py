"""What a job owes for slots that passed."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.missed import Owed, Passed, Stretch, jitter, owed
from tests.fakes import job
from tests.properties import given, settings, st
from tests.runs.test_scheduler import at

NOON = at("2026-06-01 12:00:00")
HOUR = Stretch(NOON, NOON + 3600)


def ask(
    *stretches: Stretch,
    now: float = NOON + 3600,
    pauses: Sequence[Stretch] = (),
    schedule: str = "*/10 * * * *",
    **fields: object,
) -> Owed:
    fields.setdefault("on_missed", "run-all")
    made = job("job", schedule, **fields)
    assert made.schedule is not None
    return owed(made, made.schedule, stretches, now, pauses)


def minutes(*numbers: int) -> tuple[int, ...]:
    return tuple(int(NOON) + 60 * number for number in numbers)


class OwedTests(SynchronousTestCase):
    def test_run_all(self) -> None:
        """run-all owes each slot after the mark and up to the end, oldest first."""
        self.assertEqual(ask(HOUR), Owed(minutes(10, 20, 30, 40, 50, 60)))

    def test_nothing(self) -> None:
        """Where no slot lies nothing is owed."""
        self.assertEqual(ask(Stretch(NOON, NOON + 599)), Owed())
        self.assertEqual(ask(), Owed())

    def test_run_once(self) -> None:
        """run-once owes the newest slot, which stands for all the others."""
        found = ask(HOUR, on_missed="run-once")
        self.assertEqual(found.slots, minutes(60))
        first, last = minutes(10, 50)
        self.assertEqual(found.merged, (Stretch(first, last), 5))
        self.assertEqual(found.passed, ())

    def test_run_once_of_one(self) -> None:
        """A single missed slot stands for itself only."""
        self.assertEqual(ask(Stretch(NOON, NOON + 600), on_missed="run-once"), Owed(minutes(10)))

    def test_deadline(self) -> None:
        """Slots older than the deadline are not owed; one exactly that old is."""
        found = ask(HOUR, starting_deadline=1800)
        self.assertEqual(found.slots, minutes(30, 40, 50, 60))
        first, last = minutes(10, 20)
        self.assertEqual(found.passed, (Passed(first, last, 2, "deadline"),))

    def test_deadline_of_all(self) -> None:
        """Under run-once too, slots that are all too old leave nothing to be run."""
        found = ask(HOUR, now=NOON + 9000, starting_deadline=60, on_missed="run-once")
        self.assertEqual(found.slots, ())
        self.assertEqual([each.count for each in found.passed], [6])
        self.assertIsNone(found.merged)

    def test_cap(self) -> None:
        """run-all owes the newest catchupLimit slots; those before are cut."""
        found = ask(HOUR, catchup_limit=2)
        self.assertEqual(found.slots, minutes(50, 60))
        first, last = minutes(10, 40)
        self.assertEqual(found.passed, (Passed(first, last, 4, "cap"),))
        self.assertEqual(found.cut, 4)

    def test_deadline_before_cap(self) -> None:
        """The deadline comes first: what it drops does not count against the cap."""
        found = ask(HOUR, starting_deadline=1800, catchup_limit=3)
        self.assertEqual(found.slots, minutes(40, 50, 60))
        self.assertEqual(
            [(each.count, each.reason) for each in found.passed], [(2, "deadline"), (1, "cap")]
        )

    def test_cap_over_stretches(self) -> None:
        """The cap is one for all stretches together."""
        first, second = Stretch(NOON, NOON + 1200), Stretch(NOON + 2400, NOON + 3600)
        found = ask(first, second, catchup_limit=3)
        self.assertEqual(found.slots, minutes(20, 50, 60))
        self.assertEqual(found.cut, 1)

    def test_between_stretches(self) -> None:
        """What lies between two stretches has been decided and is not owed."""
        first, second = Stretch(NOON, NOON + 1200), Stretch(NOON + 2400, NOON + 3600)
        self.assertEqual(ask(first, second).slots, minutes(10, 20, 50, 60))

    def test_pause(self) -> None:
        """Slots within a pause are not owed: from its first second, not its last."""
        found = ask(HOUR, pauses=[Stretch(NOON + 1200, NOON + 2400)])
        self.assertEqual(found.slots, minutes(10, 40, 50, 60))
        first, last = minutes(20, 30)
        self.assertEqual(found.passed, (Passed(first, last, 2, "paused"),))

    def test_month_of_seconds(self) -> None:
        """A month of missed seconds costs no more than a count."""
        found = ask(Stretch(NOON - 30 * 86400, NOON), now=NOON, schedule="* * * * * * *")
        self.assertEqual(len(found.slots), 100)
        self.assertEqual(found.cut, 30 * 86400 - 100)

    @settings(max_examples=200)
    @given(st.integers(0, 10_000))
    def test_every_slot_once(self, seed: int) -> None:
        """Each slot of the stretches is run, passed, or stood for: exactly one of them."""
        rng = random.Random(seed)
        edges = sorted(NOON + rng.randint(0, 7200) + rng.choice([0, 0.5]) for _ in range(6))
        stretches = [Stretch(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        pauses = [
            Stretch(start, start + rng.randint(1, 1500))
            for start in (NOON + rng.randint(0, 7200) for _ in range(rng.randint(0, 2)))
        ]
        made = job(
            "job",
            rng.choice(["* * * * *", "*/7 * * * *", "*/20 * * * * * *"]),
            on_missed=rng.choice(["run-once", "run-all"]),
            starting_deadline=rng.choice([None, 600, 3000]),
            catchup_limit=rng.choice([1, 3, 100]),
        )
        assert made.schedule is not None
        found = owed(made, made.schedule, stretches, NOON + 7200, pauses)
        slots = [s for each in stretches for s in made.schedule.occurrences(each.after, each.until)]
        counted = sum(each.count for each in found.passed)
        counted += 0 if found.merged is None else found.merged[1]
        self.assertEqual(len(found.slots) + counted, len(slots))
        self.assertEqual(list(found.slots), sorted(set(found.slots)))
        self.assertLessEqual(set(found.slots), set(slots))
        for slot in found.slots:
            self.assertFalse(any(each.after <= slot < each.until for each in pauses))
            if made.starting_deadline is not None:
                self.assertGreaterEqual(slot, NOON + 7200 - made.starting_deadline)


class JitterTests(SynchronousTestCase):
    def test_from_the_name(self) -> None:
        """The jitter is a whole number of milliseconds drawn from the CRC-32 of the name."""
        made = job("nightly-report", catchup_jitter=300)
        self.assertEqual(jitter(made), zlib.crc32(b"nightly-report") % 300_000 / 1000)
        self.assertLess(jitter(made), 300)

    def test_none(self) -> None:
        """Without jitter a backfill starts at once."""
        self.assertEqual(jitter(job()), 0.0)

    def test_surrogates(self) -> None:
        """A name of bytes that are no UTF-8 has one too."""
        self.assertGreaterEqual(jitter(job("caf\udce9", catchup_jitter=5)), 0.0)
