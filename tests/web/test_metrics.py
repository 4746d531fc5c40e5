"""The route of metrics."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import MetricsPage
from cronstable.runs.pauses import Pause
from cronstable.web.auth import Caller, Token, _digest
from tests.answers import Answer
from tests.fakes import job
from tests.metrics.world import families, samples
from tests.runs.test_scheduler import NOON
from tests.web.served import WEB, Connection, Served

OPENMETRICS = "application/openmetrics-text"
TOKENS = (Token(_digest(b"view-token"), Caller("view", frozenset({"view"}), True)),)


def value(answer: Answer, family: str, **labels: str) -> float | None:
    """Return the value of one series of an answer in the text format."""
    found = samples(answer.text)
    return found.get((f"cronstable_{family}", frozenset(labels.items())))


class MetricsRouteTests(SynchronousTestCase):
    def test_text(self) -> None:
        """What asks for nothing else gets the text format, whatever the operator's headers say."""
        web = attrs.evolve(
            WEB, headers=(("content-type", "text/html"), ("X-Demo", "yes"), ("Vary", "Cookie"))
        )
        served = Served(NOON, job("a"), web=web)
        for accept in ({}, {"Accept": "*/*"}, {"Accept": "text/plain"}):
            answer = served.get("/metrics", **accept)
            self.assertEqual(answer.status, 200)
            self.assertEqual(
                answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8"
            )
            self.assertEqual(answer.headers["vary"], "Accept, Accept-Encoding")
            self.assertEqual(answer.headers["x-demo"], "yes")
            self.assertNotIn("content-encoding", answer.headers)
            self.assertEqual(int(answer.headers["content-length"]), len(answer.body))
            self.assertEqual(value(answer, "job_enabled", job_name="a"), 1.0)

    def test_openmetrics(self) -> None:
        """OpenMetrics is answered to whom names it, and can be parsed as such."""
        served = Served(NOON, job("a"))
        answer = served.get("/metrics", Accept=f"{OPENMETRICS}; version=1.0.0, text/plain;q=0.5")
        self.assertEqual(
            answer.headers["content-type"],
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        )
        self.assertTrue(answer.text.endswith("# EOF\n"))
        self.assertIn("cronstable_job_runs", [each.name for each in families(answer.text, True)])

    def test_compressed(self) -> None:
        """The answer is compressed for whom takes that, and has the same content."""
        served = Served(NOON, job("a"))
        plain = served.get("/metrics")
        answer = served.get("/metrics", Accept_Encoding="gzip;q=0.5")
        self.assertEqual(answer.headers["content-encoding"], "gzip")
        self.assertEqual(int(answer.headers["content-length"]), len(answer.body))
        self.assertEqual(answer.text, plain.text)
        refused = served.get("/metrics", Accept_Encoding="gzip;q=0")
        self.assertNotIn("content-encoding", refused.headers)

    def test_head(self) -> None:
        """HEAD answers what GET would, without a body."""
        served = Served(NOON, job("a"))
        got = served.get("/metrics")
        answer = served.ask("HEAD", "/metrics")
        self.assertEqual((answer.status, answer.body), (200, b""))
        for name in ("content-type", "content-length", "vary"):
            self.assertEqual(answer.headers[name], got.headers[name])

    def test_other_methods(self) -> None:
        """Other methods are refused, naming those that are not."""
        answer = Served(NOON).ask("POST", "/metrics")
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "GET,HEAD"))

    def test_switched_off(self) -> None:
        """Switched off, there is no such path."""
        web = attrs.evolve(WEB, metrics=MetricsPage(enabled=False, public=True))
        answer = Served(NOON, web=web).get("/metrics")
        self.assertEqual((answer.status, answer.json()), (404, {"error": "404: Not Found"}))

    def test_tokens(self) -> None:
        """A token is needed and may not come in the query, unless metrics are public."""
        served = Served(NOON, job("a"), tokens=TOKENS)
        for path in ("/metrics", "/metrics?token=view-token"):
            answer = served.get(path)
            self.assertEqual(answer.status, 401)
            self.assertEqual(answer.headers["www-authenticate"], 'Bearer realm="cronstable"')
        answer = served.get("/metrics", Authorization="Bearer view-token")
        self.assertEqual(answer.status, 200)
        web = attrs.evolve(WEB, metrics=MetricsPage(public=True))
        served = Served(NOON, job("a"), web=web, tokens=TOKENS)
        self.assertEqual(served.get("/metrics").status, 200)
        self.assertEqual(served.get("/metrics/").status, 401)
        self.assertEqual(served.get("/jobs").status, 401)

    def test_local_changes_show_at_once(self) -> None:
        """A start, an end, a pause and a reload show in the very next scrape."""
        served = Served(NOON, job("a", "0 13 * * *"))
        self.assertEqual(value(served.get("/metrics"), "job_running", job_name="a"), 0.0)
        served.runs.start_now("a")
        self.assertEqual(value(served.get("/metrics"), "job_running", job_name="a"), 1.0)
        served.executor.live[0].exit(0)
        answer = served.get("/metrics")
        self.assertEqual(value(answer, "job_runs_total", job_name="a", status="success"), 1.0)
        now = served.clock.now()
        served.runs.pause("a", Pause(now, now + 60, "", "api"))
        self.assertEqual(value(served.get("/metrics"), "job_paused", job_name="a"), 1.0)
        served.install(job("b"))
        answer = served.get("/metrics")
        self.assertIsNone(value(answer, "job_enabled", job_name="a"))
        self.assertEqual(value(answer, "job_enabled", job_name="b"), 1.0)

    def test_a_rendering_is_shared_for_a_second(self) -> None:
        """Scrapes of an idle daemon within a second are one rendering; later ones are not."""
        served = Served(NOON, job("a", "0 13 * * *"))
        first = served.get("/metrics")
        served.clock.advance(0.9)
        self.assertEqual(served.get("/metrics").text, first.text)
        served.clock.advance(0.2)
        uptime = value(served.get("/metrics"), "uptime_seconds")
        self.assertAlmostEqual(uptime or 0, 1.1)

    def test_simultaneous_scrapes_share_a_rendering(self) -> None:
        """Scrapes that come while one is being rendered wait for it; one may leave."""
        served = Served(NOON, *[job(f"job-{number}") for number in range(600)])
        rendered = []
        render = served.registry.render

        def counting(openmetrics: bool) -> object:
            rendered.append(openmetrics)
            for piece in render(openmetrics):
                served.clock.rightNow += 0.004
                yield piece

        self.patch(served.registry, "render", counting)
        clients = [Connection(served) for _ in range(4)]
        for client in clients:
            client.send("GET", "/metrics")
        self.assertIsNone(clients[0].answer())
        clients[0].lose()
        texts = {served.answered(client).text for client in clients[1:]}
        self.assertEqual((len(texts), rendered), (1, [False]))

    def test_a_large_scrape_waits_for_its_client(self) -> None:
        """A client that takes nothing is sent nothing more, and is cut off in the end."""
        served = Served(NOON, *[job(f"job-{number}") for number in range(600)])
        client = Connection(served)
        client.send("GET", "/metrics")
        while not client.received:
            served.clock.advance(0)
        client.transport.producer.pauseProducing()
        sent = len(client.received)
        served.clock.advance(10)
        self.assertEqual(len(client.received), sent)
        client.transport.producer.resumeProducing()
        answer = served.answered(client)
        self.assertEqual(value(answer, "job_enabled", job_name="job-599"), 1.0)
        stuck = Connection(served)
        stuck.send("GET", "/metrics")
        while not stuck.received:
            served.clock.advance(0)
        stuck.transport.producer.pauseProducing()
        served.clock.advance(61)
        self.assertTrue(stuck.transport.disconnecting)

    def test_lag_is_measured_while_somebody_asks(self) -> None:
        """Requests make the daemon measure how late its timers are, for a moment each."""
        served = Served(NOON, job("a", "0 13 * * *"))
        served.get("/version")
        served.clock.advance(0.25)
        served.clock.advance(10)
        answer = served.get("/metrics")
        self.assertEqual(value(answer, "reactor_lag_seconds_count"), 1.0)
