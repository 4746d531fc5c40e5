"""The names of record files."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import stems
from tests.properties import given, st
from tests.state.support import vector

HEADS = st.integers(0, 10**19 - 1).map(lambda n: f"{n:019d}"[:13] + "." + f"{n:019d}"[13:])


class StemTests(SynchronousTestCase):
    """Stems and their order."""

    def test_captured_heads(self) -> None:
        """An instant is written with six decimals, padded to 20 characters."""
        for case in vector("record-names.json")["epoch_format"]:
            self.assertEqual(stems.head(float(case["epoch"])), case["head"])

    def test_captured_steps(self) -> None:
        """One microsecond more is exact arithmetic on the digits."""
        for case in vector("record-names.json")["bump"]:
            self.assertEqual(stems.bumped(case["head"]), case["bumped"])

    def test_captured_epochs(self) -> None:
        """A file tells when it was written, or does not."""
        for case in vector("record-names.json")["record_epoch"]:
            self.assertEqual(stems.written_at(case["file"]), case["epoch"], case["file"])

    def test_captured_canonical_heads(self) -> None:
        """Only heads of the exact form may raise a floor."""
        for case in vector("record-names.json")["canonical_head"]:
            self.assertEqual(stems.canonical_head(case["stem"]), case["head"], case["stem"])

    def test_never_below_the_floor(self) -> None:
        """A clock that steps back gives stems that go on from the floor."""
        case = vector("record-names.json")["floor_sequence"]
        floor = stems.greatest([case["seed_on_disk"]])
        for append in case["appends"]:
            stem = stems.above(floor, append["now"], case["instance"], append["stem"][-12:])
            self.assertEqual(stem, append["stem"])
            floor = stem

    def test_before_the_epoch(self) -> None:
        """A clock before 1970 still gives a stem of the exact form."""
        self.assertEqual(stems.head(-5.0), "0000000000000.000000")

    def test_at_the_end_of_numbers(self) -> None:
        """A hostile name that leaves no room above it is ignored rather than overtaken."""
        floor = "9999999999999.999999-ffffffffffff-999999999999"
        self.assertEqual(
            stems.above(floor, 5.0, "aaaaaaaaaaaa", "000000000001"),
            "0000000000005.000000-aaaaaaaaaaaa-000000000001",
        )

    @given(HEADS, st.floats(0, 9e12))
    def test_strictly_grow(self, head: str, now: float) -> None:
        """Whatever the clock says, the next stem is above the floor while there is room."""
        floor = f"{head}-bbbbbbbbbbbb-000000000007"
        if stems.bumped(head) is not None:
            self.assertGreater(stems.above(floor, now, "aaaaaaaaaaaa", "000000000001"), floor)
