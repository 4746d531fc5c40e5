"""The routes of calendars, against recorded answers."""

from __future__ import annotations

import attrs

from cronstable.runs.record import RunRecord
from cronstable.version import __version__
from tests.answers import Answer
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.schedule.fleet import RUNTIMES, LocalUtcTestCase
from tests.schedule.support import VECTORS, at, load
from tests.web.api import VIEW, Api, locked
from tests.web.served import WEB, Connection, Served
from tests.web.test_schedule import fleet, request_path

RECORDED_AT = at("2026-11-29T12:21:51.5Z")


class CalendarTests(LocalUtcTestCase):
    def served(self) -> Served:
        jobs, dags = fleet()
        served = Served(RECORDED_AT, *jobs, dags=dags)
        for name, seconds in RUNTIMES.items():
            for off in (-0.4, 0.4):
                record = RunRecord(name, "success", RECORDED_AT, duration=seconds * (1 + off))
                served.runs.history.add(record)
        return served

    def test_recorded(self) -> None:
        """Each recorded request gets the recorded document, but for the release in it."""
        served = self.served()
        for name in ("fleet", "job", "job-disabled", "dag"):
            recorded = load(VECTORS / "http" / f"calendar-{name}.json")["response"]
            path = request_path(f"calendar-{name}")
            answer = served.get(path)
            self.assertEqual(answer.status, 200)
            expected = recorded["body"]["text"].replace("1.2.72", __version__)
            self.assertEqual(answer.text, expected, name)
            for header in ("Content-Type", "Content-Disposition"):
                self.assertEqual(answer.headers[header.lower()], recorded["headers"][header])

    def test_nothing_to_show(self) -> None:
        """A job that runs once per boot has a valid calendar without entries."""
        answer = self.served().get("/jobs/boot-once/calendar.ics")
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.text.startswith("BEGIN:VCALENDAR\r\n"))
        self.assertNotIn("VEVENT", answer.text)

    def test_unknown(self) -> None:
        """What has no timetable has no calendar."""
        served = self.served()
        for name in ("nope", "etl", "dag%3Anope", "dag%3Aby-hand"):
            self.assertEqual(served.get(f"/jobs/{name}/calendar.ics").status, 404, name)

    def test_bounds(self) -> None:
        """Days and limit are clamped, never refused; per_job is another name for the limit."""
        served = Served(NOON, job("a"))
        for query, events in (
            ("", 100),
            ("?limit=3", 3),
            ("?per_job=4", 4),
            ("?limit=3&per_job=4", 3),
            ("?limit=0", 1),
            ("?limit=9999", 1000),
            ("?limit=few", 100),
        ):
            text = served.get(f"/calendar.ics{query}").text
            self.assertEqual(text.count("BEGIN:VEVENT"), events, query)
        served = Served(NOON, job("a", "0 13 * * *"))
        for query, events in (("", 14), ("?days=0", 1), ("?days=999", 60), ("?days=x", 14)):
            text = served.get(f"/calendar.ics{query}").text
            self.assertEqual(text.count("BEGIN:VEVENT"), events, query)

    def test_head(self) -> None:
        """HEAD answers the headers alone."""
        answer = self.served().ask("HEAD", "/calendar.ics")
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertEqual(answer.headers["content-type"], "text/calendar; charset=utf-8")

    def test_operators_headers(self) -> None:
        """The operator's headers are there, and change nothing of the document's own."""
        web = attrs.evolve(WEB, headers=(("X-Demo", "yes"), ("Content-Type", "text/html")))
        answer = Served(NOON, job("a"), web=web).get("/calendar.ics")
        self.assertEqual(answer.headers["x-demo"], "yes")
        self.assertEqual(answer.headers["content-type"], "text/calendar; charset=utf-8")

    def test_query_token(self) -> None:
        """A calendar program may send its token in the query."""
        api = Api(job("a"), web=locked())
        for path in ("/calendar.ics", "/jobs/a/calendar.ics"):
            self.assertEqual(api.get(path).status, 401)
            self.assertEqual(api.get(f"{path}?token=wrong").status, 401)
            self.assertEqual(api.get(f"{path}?days=1&token={VIEW}").status, 200)

    def test_made_as_it_is_read(self) -> None:
        """Of a large calendar only as much is made as its reader takes."""
        served = Served(NOON, *[job(f"job-{number}") for number in range(300)])
        client = Connection(served)
        client.send("GET", "/calendar.ics")
        while not client.received:
            served.clock.advance(0)
        client.transport.producer.pauseProducing()
        sent = len(client.received)
        served.clock.advance(1)
        self.assertEqual(len(client.received), sent)
        client.transport.producer.resumeProducing()
        answer: Answer = served.answered(client)
        self.assertEqual(answer.text.count("BEGIN:VEVENT"), 300 * 100)
        self.assertTrue(answer.text.endswith("END:VCALENDAR\r\n"))

    def test_a_reader_that_leaves(self) -> None:
        """A reader that goes away stops nothing and leaves no timer behind."""
        served = Served(NOON, *[job(f"job-{number}", "0 13 * * *") for number in range(50)])
        served.scheduler.stopService()
        client = Connection(served)
        client.send("GET", "/calendar.ics")
        client.lose()
        served.clock.advance(1)
        self.assertEqual(served.get("/calendar.ics").status, 200)

    def test_no_commands(self) -> None:
        """Commands, environments and output never appear."""
        secret = attrs.evolve(job("a"), command="echo hunter2")
        self.assertNotIn("hunter2", Served(NOON, secret).get("/calendar.ics").text)
