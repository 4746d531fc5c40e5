"""The slot strip: what became of each due time, and what is to come."""

from __future__ import annotations

from typing import Any

from tests.browser.base import BrowserTestCase

HOVER = """
const [name, part] = arguments;
const row = [...document.querySelectorAll('.strip-row')]
  .find(r => r.querySelector('.job-name').textContent === name);
const box = row.getBoundingClientRect();
const label = row.querySelector('.strip-name').getBoundingClientRect().width;
const width = box.width - label - 8;
const tip = document.querySelector('.strip-tip');
const said = [];
for (let x = part[0] * width; x <= part[1] * width; x += 2) {
  row.dispatchEvent(new PointerEvent('pointermove',
    {clientX: box.left + label + x, clientY: box.top + 5, bubbles: true}));
  if (!tip.hidden) said.push(tip.querySelector('strong').textContent);
}
return [...new Set(said)];
"""


class StripTests(BrowserTestCase):
    """Marks tell what became of a slot."""

    def setUp(self) -> None:
        super().setUp()
        self.open(self.serve().url)
        self.browser.wait("the strip", "return document.querySelector('.strip-row')")

    def told(self, name: str, low: float, high: float) -> list[str]:
        """Return what the marks of a row say between two parts of its width."""
        found: list[str] = self.browser.run(HOVER, name, [low, high])
        return found

    def test_each_result_is_told(self) -> None:
        """Failed, missed and skipped slots say so with their reason."""
        self.browser.wait_for(
            "the runs of sync", lambda: "failed, exit 1" in self.told("sync", 0.3, 0.5)
        )
        self.assertIn("ok", self.told("sync", 0.3, 0.5))
        self.assertEqual(self.told("watch-inbox", 0.40, 0.49), ["Missed: overlap"])
        self.browser.run("document.querySelector('.strip-scroll').scrollTop = 60")
        self.browser.wait_for(
            "the paused job", lambda: "Skipped: paused" in self.told("cleanup-tmp", 0.45, 0.5)
        )

    def test_what_is_to_come(self) -> None:
        """Right of now there are only due times, and none where nothing will run."""
        self.assertEqual(self.told("sync", 0.52, 1), ["Due"])
        self.assertEqual(self.told("leap-job", 0.52, 1), [])

    def test_a_press_opens_the_job(self) -> None:
        """Pressing a row opens its job; the selection shows in strip and table."""
        self.browser.run("document.querySelectorAll('.strip-row')[1].click()")
        self.browser.wait("the drawer", "return !document.querySelector('.drawer').hidden")
        selected = self.browser.run(
            "return [...document.querySelectorAll('[aria-selected=true]')].map(e => e.className)"
        )
        self.assertEqual(sorted(selected), ["job", "strip-row"])

    def test_zoom_is_kept(self) -> None:
        """The chosen span survives a reload."""
        self.press_button("3 d", "#time")
        self.browser.run("window.before = true; location.reload()")
        chosen = "const s = document.querySelector('[aria-label^=Span] [aria-pressed=true]');"
        self.browser.wait(
            "the span", chosen + "return !window.before && s && s.textContent === '3 d'"
        )
        self.browser.wait("the strip", "return document.querySelector('.strip-row')")


class MarksTests(BrowserTestCase):
    """How slots and runs become marks."""

    def marks(self, slots: list[dict[str, Any]], runs: list[dict[str, Any]], **raw: Any) -> Any:
        """Return [at, end, kind] of each mark of a made-up job; now is 10,000 s, in seconds."""
        self.browser.open(self.serve().url + "blank")
        job = {"raw": {"running": False, "pids": [], **raw}, "startedAt": None, "runningSince": 0}
        return self.browser.run_async(
            """
            const m = await import('/page/model/slots.js');
            const [slots, runs, job] = args;
            const ms = o => Object.fromEntries(Object.entries(o).map(
              ([k, v]) => [k, typeof v === 'number' ? v * 1000 : v]));
            const book = {slots: new Map(), runs: new Map()};
            for (const s of slots) {
              const slot = {reason: null, startedAt: null, count: 1, ...ms(s)};
              book.slots.set(slot.at, {until: slot.at, ...slot});
            }
            for (const r of runs) book.runs.set(r.startedAt * 1000, ms(r));
            const found = m.marks(book, job, 0, 10_000_000, 10_000_000);
            return found.marks.map(x => [x.at / 1000, x.end / 1000, x.kind]);
            """,
            slots,
            runs,
            job,
        )

    def test_slot_and_run_are_one(self) -> None:
        """A slot that ran takes length and outcome from its run; other runs stand alone."""
        got = self.marks(
            [{"at": 100, "result": "ran", "startedAt": 101}, {"at": 200, "result": "missed"}],
            [
                {"startedAt": 101, "finishedAt": 150, "outcome": "failure"},
                {"startedAt": 300, "finishedAt": 310, "outcome": "success"},
            ],
        )
        self.assertEqual(got, [[101, 150, "failed"], [200, 200, "missed"], [300, 310, "ok"]])

    def test_only_live_starts_run(self) -> None:
        """Of starts without a finished run, only as many run as there are processes."""
        got = self.marks(
            [{"at": at, "result": "ran", "startedAt": at} for at in (9000, 9100, 9200)],
            [],
            running=True,
            pids=[7],
        )
        self.assertEqual(got, [[9000, 9000, "ran"], [9100, 9100, "ran"], [9200, 10000, "running"]])

    def test_a_gap_is_one_long_mark(self) -> None:
        """Slots that were missed as a range are drawn from the first to the last."""
        got = self.marks([{"at": 100, "until": 900, "count": 80, "result": "missed"}], [])
        self.assertEqual(got, [[100, 900, "missed"]])
