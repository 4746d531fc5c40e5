"""The page's own reading of schedules and streams, run in the browser that will run it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.browser.base import BrowserTestCase

VECTORS = Path(__file__).parent.parent / "vectors" / "cron"


def vectors(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file of schedule vectors."""
    found: list[dict[str, Any]] = json.loads((VECTORS / name).read_text("utf-8"))["vectors"]
    return found


def millis(text: str) -> int:
    """Return an instant as JavaScript counts it."""
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


class ModelTestCase(BrowserTestCase):
    """A blank page that may import the page's modules as they are."""

    def setUp(self) -> None:
        super().setUp()
        fake = self.serve()
        self.browser.open(fake.url + "blank")

    def call(self, module: str, body: str, *arguments: Any) -> Any:
        """Import a module as C{m} and run a function body with the arguments in C{args}."""
        return self.browser.run_async(
            f"const m = await import('/page/{module}'); {body}", *arguments
        )


class CronTests(ModelTestCase):
    """The slot strip's own fires agree with the schedule engine."""

    def test_vectors(self) -> None:
        """Every case of the shared vectors gives the same fires, or the same refusal."""
        replaced = {case["id"]: case for case in vectors("superseded.json")}
        cases = []
        for case in vectors("next_fires.json"):
            other = replaced.get(case["id"], case)
            if (
                case["group"] in ("lenient-parse", "horizon")
                or other["fires_utc"] is None
                and case["outcome"] != "error"
            ):
                continue
            wanted = (
                None
                if case["outcome"] == "error"
                else [millis(text) for text in other["fires_utc"]]
            )
            start = millis(case["start_utc"])
            end = wanted[-1] if wanted else start + 400 * 86_400_000
            # A wait of many years is a long walk through its days, and nothing that a strip shows.
            if end - start < 4000 * 86_400_000:
                cases.append(
                    [
                        case["id"],
                        case.get("resolved") or case["expr"],
                        case["tz"],
                        start,
                        end,
                        wanted,
                    ]
                )
        self.assertGreater(len(cases), 950)
        wrong = self.call(
            "model/cron.js",
            """
            const bad = [];
            for (const [id, text, zone, from, to, wanted] of args[0]) {
              let got;
              try { got = m.fires(text, zone, from, to, {limit: 10}); } catch { got = null; }
              if (String(got) !== String(wanted)) bad.push([id, text, zone, got, wanted]);
            }
            return bad;""",
            cases,
        )
        self.assertEqual(wrong, [])

    def test_repeated_hours(self) -> None:
        """Where clocks go back, schedules of every hour fire through both legs, others once."""
        cases = [
            [
                case["expr"],
                case["tz"],
                millis(case["start"]),
                [millis(text) for text in case["next"]],
            ]
            for case in vectors("repeated_hour.json")
        ]
        wrong = self.call(
            "model/cron.js",
            """
            return args[0].filter(([text, zone, from, wanted]) =>
              String(m.fires(text, zone, from, wanted.at(-1), {limit: 20})) !== String(wanted));
            """,
            cases,
        )
        self.assertEqual(wrong, [])


class WordsTests(ModelTestCase):
    """Schedules in words are short, and never wrong: what has no short form is left as written."""

    def test_words(self) -> None:
        """Common schedules read like a person says them."""
        wanted = {
            "* * * * *": "every minute",
            "*/5 * * * *": "every 5 min",
            "*/7 * * * *": None,
            "0 * * * *": "hourly at :00",
            "0 */2 * * *": "every 2 h",
            "30 2 * * mon,fri": "Mon, Fri 02:30",
            "0 9 * * 1-5": "Mon\u2013Fri 09:00",
            "@daily": "daily 00:00",
            "@reboot": "at boot",
            "0 0 1 * *": "1st of the month 00:00",
            "0 0 L * *": "last day of the month 00:00",
            "0 0 * * fri#2": "2nd Fri of the month 00:00",
            "0 0 13 * 5": None,
            "0 0 1 1 *": "1 Jan 00:00",
            "*/15 9-17 * * *": "every 15 min 09:00\u201317:59",
            "*/15 * * * * * *": "every 15 s",
            "0 6,18 * * *": "daily 06:00, 18:00",
            "not a schedule": None,
        }
        got = self.call(
            "model/words.js", "return args[0].map(text => m.scheduleWords(text))", list(wanted)
        )
        self.assertEqual(dict(zip(wanted, got, strict=True)), wanted)


class TextTests(ModelTestCase):
    """What comes from jobs is safe to look at."""

    def test_events_in_any_chunks(self) -> None:
        """An event stream gives the same events however it is cut, with LF, CR or CRLF."""
        stream = (
            'event: line\r\ndata: {"a":1}\r\n\r\n: ping\n\n'
            "event: end\rdata: x\rdata: y\r\rdata: z\n\n"
        )
        got = self.call(
            "core/sse.js",
            """
            const all = [];
            for (let cut = 1; cut < args[0].length; cut += 1) {
              const seen = [];
              const feed = m.createEventParser((type, data) => seen.push([type, data]));
              feed(args[0].slice(0, cut)); feed(args[0].slice(cut));
              all.push(JSON.stringify(seen));
            }
            return [...new Set(all)].map(JSON.parse);""",
            stream,
        )
        self.assertEqual(got, [[["line", '{"a":1}'], ["end", "x\ny"], ["message", "z"]]])

    def test_colours_and_nothing_else(self) -> None:
        """Colour sequences become pieces with classes; every other sequence is left out."""
        got = self.call(
            "core/ansi.js",
            "return m.colourPieces(args[0]).map(p => [p.text, p.classes, p.colour])",
            "a\x1b[1;31mb\x1b[0m\x1b[2J\x1b]0;owned\x07c\x1b[38;5;208md\x1b[38;2;1;2;3me\x1b[mf",
        )
        self.assertEqual(
            got,
            [
                ["a", "", None],
                ["b", "sgr-bold sgr-c1", None],
                ["c", "", None],
                ["d", "", "rgb(255 135 0)"],
                ["e", "", "rgb(1 2 3)"],
                ["f", "", None],
            ],
        )

    def test_control_characters_become_marks(self) -> None:
        """Nothing that steers a terminal or turns the direction of writing is left."""
        got = self.call(
            "core/text.js", "return m.clean(args[0])", "a\x00b\x1bc\u202ed\u2066e\tf\ng\x7f"
        )
        self.assertEqual(got, "a\ufffdb\ufffdc\ufffdd\ufffde\tf\ng\ufffd")

    def test_segments_are_data(self) -> None:
        """A name with any character is one segment of a path."""
        got = self.call(
            "core/api.js",
            "return args[0].map(m.segment)",
            ["a/b", "a b", "a%20b", "what?", "tag#1", "\u00f1"],
        )
        self.assertEqual(got, ["a%2Fb", "a%20b", "a%2520b", "what%3F", "tag%231", "%C3%B1"])


class VerdictTests(ModelTestCase):
    """What the sentence at the top is made of."""

    def test_failures_that_belong_together(self) -> None:
        """Failures alike within ten minutes are likely one cause; others are told apart."""
        jobs = [
            {
                "name": name,
                "lastAt": at,
                "raw": {
                    "last_run": {"outcome": "failure", "exit_code": code, "fail_reason": reason}
                },
            }
            for name, at, code, reason in (
                ("a", 1_000_000, 1, "command exited with code 1"),
                ("b", 1_100_000, 1, "command exited with code 1"),
                ("c", 9_000_000, 2, "command exited with code 2"),
                ("d", 1_000_000, 2, "command exited with code 2"),
                ("e", 1_000_000, -100, "still running"),
            )
        ]
        got = self.call(
            "model/verdict.js",
            "return m.groupFailures(args[0])"
            ".map(g => [g.exit, g.likelyOne, g.reason, g.jobs.length])",
            jobs,
        )
        self.assertEqual(
            sorted(got),
            [
                ["exit 1", True, "", 2],
                ["exit 2", False, "", 2],
                ["timed out", False, "still running", 1],
            ],
        )

    def test_status_rule(self) -> None:
        """The first matching state counts, and an outcome nobody knows is unknown, never ok."""
        base = {
            "enabled": True,
            "running": False,
            "paused": None,
            "last_run": {"outcome": "success"},
        }
        cases = [
            {**base},
            {**base, "enabled": False, "running": True},
            {**base, "running": True, "paused": {}},
            {**base, "verification": {"running": True}, "running": True},
            {**base, "pool": {"queued": [1]}},
            {**base, "paused": {}},
            {**base, "last_run": None},
            {**base, "last_run": {"outcome": "teleported"}},
            {**base, "last_run": {"outcome": "skipped"}},
            {**base, "last_run": {"outcome": "failure"}},
        ]
        got = self.call("model/job.js", "return args[0].map(m.statusOf)", cases)
        self.assertEqual(
            got,
            [
                "ok",
                "disabled",
                "running",
                "verifying",
                "queued",
                "paused",
                "pending",
                "unknown",
                "skipped",
                "failed",
            ],
        )

    def test_running_since(self) -> None:
        """The daemon tells since when a job runs; where it does not, the page has a bound only."""
        raw = {"name": "a", "enabled": True, "running": True, "last_run": None, "command": "x"}
        told = [{"started_at": "2026-01-01T00:00:00+00:00"}, {"started_at": None}]
        got = self.call(
            "model/job.js",
            "return args[0].map(raw => m.ingest([raw], 5000, new Map())[0])"
            ".map(job => [job.runningSince, job.sawStart])",
            [{**raw, "instances": told}, raw, {**raw, "running": False}],
        )
        start = millis("2026-01-01T00:00:00Z")
        self.assertEqual(got, [[start, True], [5000, False], [None, False]])
