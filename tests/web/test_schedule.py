"""The routes that answer questions about schedules, against recorded answers where there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import attrs

from cronstable.config.sections_values import DagConfig
from cronstable.config.values import JobConfig
from cronstable.runs.pauses import Pause
from cronstable.schedule import parse
from cronstable.web.schedule import slot_at
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.schedule.fleet import FLEET, ZONES, LocalUtcTestCase, recorded
from tests.schedule.support import VECTORS, at, load
from tests.web.served import Connection, Served


def fleet() -> tuple[list[JobConfig], dict[str, DagConfig]]:
    """Return the jobs and the workflow of the recorded fleet, the excluded ones too."""
    jobs = []
    for name, text in FLEET[:-1]:
        each = job(name, text, zone=ZONES.get(name, "UTC"))
        if name == "local-frame":
            when = parse(text, local=True)
            each = attrs.evolve(each, schedule=when, timezone=None, utc=False)
        jobs.append(each)
    jobs += [job("off", "0 5 * * *", enabled=False), job("boot-once", "@reboot")]
    name, text = FLEET[-1]
    etl = DagConfig("etl", (), schedule_text=text, schedule=parse(text))
    by_hand = DagConfig("by-hand", ())
    return jobs, {"etl": etl, "by-hand": by_hand}


def request_path(vector: str) -> str:
    """Return what was asked when an answer was recorded."""
    path: str = load(VECTORS / "http" / f"{vector}.json")["request"]["path"]
    return path


class ScheduleTestCase(LocalUtcTestCase):
    """A daemon with the recorded fleet."""

    def served(self, now: float = NOON) -> Served:
        jobs, dags = fleet()
        self.api = Served(now, *jobs, dags=dags)
        return self.api

    def json(self, path: str) -> Any:
        """Return a successful answer."""
        answer = self.api.get(path)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers["content-type"], "application/json")
        return answer.json()

    def refused(self, path: str, status: int = 400) -> str:
        """Return why a request is refused."""
        answer = self.api.get(path)
        self.assertEqual(answer.status, status)
        error: str = answer.json()["error"]
        return error


class PreviewTests(ScheduleTestCase):
    def test_recorded(self) -> None:
        """Each recorded request gets the recorded answer, but for texts in our own words."""
        for name in ("", "-hash", "-hash-noseed", "-invalid", "-never", "-reboot", "-tz-dst"):
            expected = recorded(f"schedule-preview{name}")
            self.served(at("2026-11-29T12:21:51.5Z"))
            found = self.json(request_path(f"schedule-preview{name}"))
            for side in (expected, found):
                side.pop("error", None)
                for finding in side.get("lint", ()):
                    self.assertTrue(finding.pop("message"))
            self.assertEqual(found, expected, name)

    def test_refusals(self) -> None:
        """A blank expression and an unknown zone are refused, the zone by its name."""
        self.served()
        for path in ("/schedule/preview", "/schedule/preview?expr=%20"):
            self.assertIn("expr", self.refused(path))
        self.assertIn("Mars/X", self.refused("/schedule/preview?expr=%40daily&tz=Mars%2FX"))

    def test_limits(self) -> None:
        """The number of fires is clamped, never refused; count is another name for it."""
        self.served()
        for query, shown in (
            ("", 12),
            ("&limit=3", 3),
            ("&count=4", 4),
            ("&limit=3&count=4", 3),
            ("&limit=0", 1),
            ("&limit=1000", 60),
            ("&limit=many", 12),
        ):
            found = self.json(f"/schedule/preview?expr=*+*+*+*+*{query}")
            self.assertEqual(len(found["fires"]), shown, query)


class WhyTests(ScheduleTestCase):
    def test_recorded(self) -> None:
        """Each recorded request gets the recorded answer, and one field of ours."""
        for name in ("", "-dag", "-disabled", "-match-dst", "-reboot"):
            self.served(at("2026-11-29T12:21:51.5Z"))
            expected = recorded(f"schedule-why{name}")
            found = self.json(request_path(f"schedule-why{name}"))
            self.assertIsNone(found.pop("slot"))
            for side in (expected, found):
                for note in side["notes"]:
                    self.assertTrue(note.pop("message"))
            self.assertEqual(found, expected, name)

    def test_paused(self) -> None:
        """A pause is told with its end, who made it and why."""
        served = self.served()
        served.runs.pause("dup-a", Pause(NOON, NOON + 60, "upstream migration", "ops"))
        served.runs.pause("dup-b", Pause(NOON, NOON + 60, "", ""))
        path = "/schedule/why?at=2026-12-01T00:00:00Z&job="
        (note,) = self.json(f"{path}dup-a")["notes"]
        self.assertEqual((note["code"], note["level"]), ("paused", "note"))
        for part in ("2026-06-01T12:01:00+00:00", "by ops", "upstream migration"):
            self.assertIn(part, note["message"])
        (note,) = self.json(f"{path}dup-b")["notes"]
        self.assertEqual(note["message"], "the job is paused until 2026-06-01T12:01:00+00:00")

    def test_refusals(self) -> None:
        """Missing and bad values are 400; what has no timetable is 404."""
        self.served()
        for path in ("?job=off", "?at=2026-12-01", "?job=&at=2026-12-01", "?job=off&at="):
            self.assertIn("job and at", self.refused(f"/schedule/why{path}"))
        self.assertIn("yesterday", self.refused("/schedule/why?job=off&at=yesterday"))
        for name in ("nope", "etl", "dag:nope", "dag:by-hand"):
            error = self.refused(f"/schedule/why?job={name}&at=2026-12-01", 404)
            self.assertIn(repr(name), error)

    def test_slot(self) -> None:
        """What the slot book knows of the moment is told: open, ran, or why it did not run."""
        served = self.served(NOON - 30)
        served.runs.pause("ok-minutely", Pause(NOON, NOON + 90, "", "api"))
        served.advance(160)
        for moment, result, reason in (
            ("12:00:00", "skipped", "paused"),
            ("12:02:00", "ran", None),
        ):
            path = f"/schedule/why?job=ok-minutely&at=2026-06-01T{moment}Z"
            slot = self.json(path)["slot"]
            self.assertEqual((slot["result"], slot["reason"]), (result, reason), moment)
            self.assertEqual(slot["slot"], f"2026-06-01T{moment}+00:00")
        for moment in ("11:59:00Z", "12:02:01Z", "12:10:00Z"):
            path = f"/schedule/why?job=ok-minutely&at=2026-06-01T{moment}"
            self.assertIsNone(self.json(path)["slot"], moment)
        # Other spellings of one instant.
        path = "/schedule/why?job=ok-minutely&at=2026-06-01T14:02:00.4%2B02:00"
        self.assertEqual(self.json(path)["slot"]["result"], "ran")

    def test_slot_of_a_gap(self) -> None:
        """A slot in a range that was passed over is told; what lies between its slots is not."""
        served = self.served()
        served.book.gap("dup-a", 0, int(NOON), int(NOON) + 600, 3, "delayed")
        found = slot_at(served.book, "dup-a", int(NOON) + 300, True)
        self.assertEqual((found or {})["reason"], "delayed")
        self.assertIsNone(slot_at(served.book, "dup-a", int(NOON) + 301, False))
        self.assertIsNone(slot_at(served.book, "dup-a", int(NOON) + 601, True))

    def test_open_slot(self) -> None:
        """A slot that has not been decided is open."""
        served = self.served()
        served.book.open("dup-a", 0, int(NOON), served.boot)
        found = slot_at(served.book, "dup-a", int(NOON), True)
        self.assertEqual((found or {})["result"], "open")


class FleetTests(ScheduleTestCase):
    def test_pressure(self) -> None:
        """The recorded fleet gives the recorded pressure."""
        expected = recorded("schedule-pressure")
        self.served(at(expected["start"]))
        self.assertEqual(self.json(request_path("schedule-pressure")), expected)

    def test_duplicates(self) -> None:
        """The recorded fleet gives the recorded groups."""
        self.served()
        found = self.json("/schedule/duplicates")
        self.assertEqual(found, recorded("schedule-duplicates"))

    def test_suggestions(self) -> None:
        """The recorded fleet gives the recorded suggestions."""
        for name in ("hourly", "daily"):
            expected = recorded(f"schedule-suggest-{name}")
            self.served(at(expected["based_on"]["start"]))
            self.assertEqual(self.json(request_path(f"schedule-suggest-{name}")), expected)

    def test_refusals(self) -> None:
        """An unknown zone is refused by its name, before a bad period is."""
        self.served()
        for path in ("/schedule/pressure?tz=Mars/X", "/schedule/suggest?period=x&tz=Mars/X"):
            self.assertIn("Mars/X", self.refused(path))
        self.assertIn("weekly", self.refused("/schedule/suggest?period=weekly"))

    def test_windows(self) -> None:
        """Hours are clamped, never refused."""
        self.served()
        for query, hours in (("", 24), ("?hours=0", 1), ("?hours=999", 168), ("?hours=x", 24)):
            self.assertEqual(self.json(f"/schedule/pressure{query}")["hours"], hours)

    def test_long_work_takes_turns(self) -> None:
        """Work on a large fleet leaves the others their turns; one may leave meanwhile."""
        served = Served(NOON, *[job(f"job-{each}", f"{each % 60} * * * *") for each in range(500)])
        self.patch(served.clock, "seconds", self.ticking(served))
        for path in ("/schedule/pressure", "/schedule/duplicates", "/schedule/suggest"):
            clients = [Connection(served) for _ in range(3)]
            for client in clients:
                client.send("GET", path)
            self.assertIsNone(clients[0].answer())
            clients[0].lose()
            self.assertEqual([served.answered(each).status for each in clients[1:]], [200, 200])

    def ticking(self, served: Served) -> Callable[[], float]:
        """Return a clock on which a millisecond passes with each look at it."""

        def seconds() -> float:
            served.clock.rightNow += 0.001
            return served.clock.rightNow

        return seconds


class NamesTests(ScheduleTestCase):
    def test_odd_names(self) -> None:
        """Names of jobs may hold anything that can be quoted."""
        self.served()
        name = quote("name with space/slash", safe="")
        found: Mapping[str, Any] = self.json(f"/schedule/why?job={name}&at=2026-12-01T03:45Z")
        self.assertEqual((found["job"], found["matches"]), ("name with space/slash", True))
