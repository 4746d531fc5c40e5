"""The routes of badges."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import Badges
from cronstable.config.values import Sla
from cronstable.runs.pauses import Pause
from cronstable.web.picture import STYLES, badge
from tests.answers import Answer
from tests.fakes import job
from tests.schedule.support import VECTORS, load
from tests.web.api import VIEW, Api, locked, section

YEARLY = "0 0 1 7 *"


def said(answer: Answer) -> str:
    """Return what a badge says to those who do not see it."""
    assert answer.status == 200, answer
    return str(ElementTree.fromstring(answer.text).attrib["aria-label"])


class WordTests(SynchronousTestCase):
    """Which word is shown when."""

    def api(self, *jobs: Any) -> Api:
        self.served = Api(*jobs)
        return self.served

    def word(self, name: str = "a") -> str:
        label, _, word = said(self.served.get(f"/jobs/{name}/badge.svg")).partition(": ")
        self.assertEqual(label, name)
        return word

    def fleet(self) -> str:
        label, _, word = said(self.served.get("/badge.svg")).partition(": ")
        self.assertEqual(label, "cronstable")
        return word

    def test_a_job_through_its_life(self) -> None:
        """Pending, running, passing, failing; a run under way hides no verdict."""
        api = self.api(job("a", YEARLY))
        self.assertEqual((self.word(), self.fleet()), ("pending", "no status"))
        api.runs.start_now("a")
        self.assertEqual((self.word(), self.fleet()), ("running", "no status"))
        api.launched().exit(0)
        self.assertEqual((self.word(), self.fleet()), ("passing", "1 passing"))
        api.runs.start_now("a")
        self.assertEqual(self.word(), "passing")
        api.launched().exit(1)
        self.assertEqual((self.word(), self.fleet()), ("failing", "1 failing"))
        api.runs.start_now("a")
        self.assertEqual(self.word(), "failing")
        api.runs.cancel("a")
        self.assertEqual((self.word(), self.fleet()), ("cancelled", "no status"))
        api.runs.start_now("a")
        self.assertEqual(self.word(), "running")

    def test_pause(self) -> None:
        """A pause hides a failure; the rows that it leaves are no verdict."""
        api = self.api(job("a", "* * * * *"))
        api.runs.start_now("a")
        api.launched().exit(1)
        now = api.clock.now()
        api.runs.pause("a", Pause(now, now + 3600, "", "api"))
        self.assertEqual((self.word(), self.fleet()), ("paused", "no status"))
        api.advance(120, 5)
        self.assertEqual(api.runs.history.runs("a")[-1].outcome, "skipped")
        api.runs.resume("a")
        self.assertEqual((self.word(), self.fleet()), ("failing", "1 failing"))

    def test_disabled(self) -> None:
        """A disabled job says so, and counts nowhere."""
        self.api(job("a", YEARLY, enabled=False))
        self.assertEqual((self.word(), self.fleet()), ("disabled", "no status"))

    def test_overdue(self) -> None:
        """A job that is late is overdue, unless it fails."""
        api = self.api(job("a", YEARLY, sla=Sla(max_time_since_success=60)), job("b", YEARLY))
        api.runs.start_now("b")
        api.launched().exit(0)
        api.advance(120, 5)
        api.sla.judge(api.runs.jobs)
        api.clock.advance(2)
        self.assertEqual((self.word(), self.fleet()), ("overdue", "1 overdue"))
        api.runs.start_now("a")
        self.assertEqual(self.word(), "overdue")
        api.launched().exit(1)
        self.assertEqual((self.word(), self.fleet()), ("failing", "1 failing"))

    def test_no_jobs(self) -> None:
        """Without jobs there is nothing to tell."""
        self.api()
        self.assertEqual(self.fleet(), "no jobs")


class BadgeRouteTests(SynchronousTestCase):
    def test_headers(self) -> None:
        """Headers are those that were recorded, for a badge of everybody and for others."""
        for vector, web, token in (
            ("badge-fleet", section(), ""),
            ("badge-job", section(), ""),
            ("anon-badge-public", locked(badges=Badges(public=True)), ""),
            ("badge-fleet", locked(), VIEW),
        ):
            recorded = load(VECTORS / "http" / f"{vector}.json")
            api = Api(job("ok-minutely", YEARLY), web=web)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = api.get(recorded["request"]["path"], **headers)
            self.assertEqual(answer.status, 200)
            for name, value in recorded["response"]["headers"].items():
                if name not in ("ETag", "Cronstable-Instance"):
                    self.assertEqual(answer.headers[name.lower()], value)
            self.assertRegex(answer.headers["etag"], r'\A"[0-9a-f]{32}"\Z')
            for name in ("x-frame-options",):
                wanted = name in {each.lower() for each in recorded["response"]["headers"]}
                self.assertEqual(name in answer.headers, wanted)

    def test_conditional(self) -> None:
        """A badge that shows the same is not sent again."""
        api = Api(job("a", YEARLY))
        first = api.get("/badge.svg")
        again = api.get("/badge.svg", If_None_Match=first.headers["etag"])
        self.assertEqual((again.status, again.body), (304, b""))
        self.assertEqual(again.headers["etag"], first.headers["etag"])
        self.assertEqual(again.headers["cache-control"], "no-cache")
        api.runs.start_now("a")
        api.launched().exit(0)
        changed = api.get("/badge.svg", If_None_Match=first.headers["etag"])
        self.assertEqual(changed.status, 200)

    def test_refusals(self) -> None:
        """An unknown job, a style that is none, and labels that cannot be shown are refused."""
        api = Api(job("a", YEARLY))
        self.assertEqual(api.get("/jobs/nope/badge.svg").status, 404)
        for query in ("style=zzz", "label=", "label=%20", "label=%0A", f"label={'x' * 65}"):
            for path in ("/badge.svg", "/jobs/a/badge.svg"):
                answer = api.get(f"{path}?{query}")
                self.assertEqual(answer.status, 400, query)
                self.assertIn(query.partition("=")[0], answer.json()["error"])

    def test_labels(self) -> None:
        """A label of up to 64 printable characters replaces the name."""
        api = Api(job("a", YEARLY))
        for query, label in (
            ("%3Cb%3E%26%22", '<b>&"'),
            ("%E5%A4%9C%E9%96%93", "\u591c\u9593"),
            ("x" * 64, "x" * 64),
        ):
            answer = api.get(f"/jobs/a/badge.svg?label={query}&style=flat-square")
            self.assertEqual(said(answer), f"{label}: pending")

    def test_switched_off(self) -> None:
        """Switched off, there is no such path."""
        api = Api(job("a", YEARLY), web=section(badges=Badges(enabled=False)))
        for path in ("/badge.svg", "/jobs/a/badge.svg"):
            answer = api.get(path)
            self.assertEqual((answer.status, answer.json()), (404, {"error": "404: Not Found"}))

    def test_tokens(self) -> None:
        """A token is needed unless badges are public; then for nothing of theirs."""
        api = Api(job("a", YEARLY), web=locked())
        self.assertEqual(api.get("/jobs/a/badge.svg").status, 401)
        api = Api(job("a", YEARLY), web=locked(badges=Badges(public=True)))
        self.assertEqual(api.get("/jobs/a/badge.svg").status, 200)
        self.assertEqual(api.get("/jobs/a").status, 401)


class PictureTests(SynchronousTestCase):
    def test_well_formed(self) -> None:
        """Whatever a name holds, the picture is XML that says it, each text in its box."""
        for label in ("a", "x" * 200, "<script>&\"'", "\ud800", "a\x00b", "\u591c\u9593", " "):
            for style in STYLES:
                root = ElementTree.fromstring(badge(label, "12 failing", "failing", style))
                width = int(root.attrib["width"])
                texts = root.findall(".//{http://www.w3.org/2000/svg}text")
                self.assertEqual(len(texts), 2)
                for text in texts:
                    end = int(text.attrib["x"]) + int(text.attrib["textLength"])
                    self.assertLessEqual(end, width)
                self.assertNotIn("script", [each.tag for each in root.iter()])

    def test_styles_differ(self) -> None:
        """Flat badges have round corners."""
        self.assertIn("rx=", badge("a", "passing", "passing", "flat"))
        self.assertNotIn("rx=", badge("a", "passing", "passing", "flat-square"))

    def test_colours(self) -> None:
        """Good, bad and other words look different."""
        drawn = {badge("a", "word", word, "flat") for word in ("passing", "failing", "pending")}
        self.assertEqual(len(drawn), 3)
