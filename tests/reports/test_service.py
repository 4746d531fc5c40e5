"""Tests for the report service: bounds, isolation, counting, stopping."""

from __future__ import annotations

import logging
import timeit
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import ManualClock, SystemClock
from cronstable.config.sections_values import NotifyConfig
from cronstable.config.values import (
    EventlogReport,
    JobConfig,
    MailReport,
    NamedSecret,
    PushReport,
    Report,
    Secret,
    SentryReport,
    ShellReport,
    WebhookReport,
)
from cronstable.reports.lanes import Lanes
from cronstable.reports.service import ReportService
from tests.fakes import FakeExecutor, job
from tests.reports.toys import Servers, ToyHttpFactory, ToySmtpFactory, http
from tests.reports.values import finished

SHELL = Report(shell=ShellReport(command="tell"))
PUSH = Report(push=PushReport(enabled=True))
BOTH = Report(shell=ShellReport(command="tell"), push=PushReport(enabled=True))


class Records(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def watch_log(test: Any) -> Records:
    """Keep what logger C{cronstable} says during C{test}."""
    records, log = Records(), logging.getLogger("cronstable")
    level = log.level
    log.addHandler(records)
    log.setLevel(logging.INFO)
    test.addCleanup(log.setLevel, level)
    test.addCleanup(log.removeHandler, records)
    return records


def failing(**hooks: Report) -> JobConfig:
    """Return a job with C{hooks}."""
    return job(**hooks)


class ReportServiceTests(SynchronousTestCase):
    """Deliveries by a shell reporter whose command the test ends."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.executor = FakeExecutor()
        self.log = watch_log(self)
        self.service = self.make()

    def make(self, **fields: Any) -> ReportService:
        """Return a service without threads."""
        return ReportService(
            None,
            self.clock,
            host="node-a",
            environ={"TOKEN": "hunter22", "PATH": "/bin"},
            executor=self.executor,
            call_in_thread=fields.pop("call_in_thread", maybeDeferred),
            **fields,
        )

    def report(self, hook: str = "onFailure", **fields: Any) -> Deferred[None]:
        """Report a finished run."""
        return self.service.report(hook, finished(**fields))

    def errors(self) -> list[str]:
        """Return the errors that were logged."""
        return [line for line in self.log.lines if line.startswith("ERROR")]

    def test_nothing_configured(self) -> None:
        """Where nothing is configured there is nothing to wait for, and it costs nothing."""
        run = finished()
        self.assertIsNone(self.successResultOf(self.service.report("onFailure", run)))
        report = self.service.report
        cost = min(timeit.repeat(lambda: report("onFailure", run), number=2000, repeat=5)) / 2000
        self.assertLess(cost, 20e-6)
        self.assertEqual(self.log.lines, [])

    def test_blank_command(self) -> None:
        """A blank command is none."""
        self.report(of=failing(on_failure=Report(shell=ShellReport(command=" "))))
        self.assertEqual(self.executor.launches, [])

    def test_hooks(self) -> None:
        """Each hook has its own reporters, and what it reports is told at INFO."""
        of = job(
            on_failure=Report(shell=ShellReport(command="f")),
            on_permanent_failure=Report(shell=ShellReport(command="p")),
            on_success=Report(shell=ShellReport(command="s")),
        )
        for hook, command, word in (
            ("onFailure", "f", "failure"),
            ("onPermanentFailure", "p", "permanent failure"),
            ("onSuccess", "s", "success"),
        ):
            self.report(hook, of=of)
            self.assertEqual(self.executor.launches[-1].spec.argv[-1], command)
            self.assertEqual(self.log.lines[-1], f"INFO Cron job job: reporting {word}")

    def test_waits_for_the_last(self) -> None:
        """The Deferred fires when every reporter of the hook is over, well or not."""
        done = self.report(of=failing(on_failure=BOTH))
        self.assertNoResult(done)
        self.assertEqual(self.service.in_flight, 1)
        self.executor.launches[0].exit(0)
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(self.service.in_flight, 0)
        self.assertEqual(self.service.counts, {("shell", "delivered"): 1, ("push", "failed"): 1})
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure_is_told(self) -> None:
        """A report that fails is one ERROR, counted and kept, and the caller sees success."""
        done = self.report(of=failing(on_failure=SHELL))
        self.executor.launches[0].exit(3)
        self.assertIsNone(self.successResultOf(done))
        (error,) = self.errors()
        self.assertTrue(error.startswith("ERROR Problem reporting job job failure: shell: "))
        self.assertTrue(error.endswith("the command ended with return code 3"))
        (loss,) = self.service.losses
        self.assertEqual((loss.kind, loss.name, loss.hook), ("shell", "job", "onFailure"))
        self.assertEqual((self.service.lost, loss.at), (1, self.clock.now()))

    def test_push(self) -> None:
        """Push is refused with a clear word, the event log only exists on Windows."""
        self.report(of=failing(on_failure=PUSH))
        self.assertIn("push is not served by this release", self.errors()[0])
        done = self.report(of=failing(on_failure=Report(eventlog=EventlogReport(enabled=True))))
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(len(self.errors()), 1)

    def test_odd_name(self) -> None:
        """A job's name cannot forge lines of the log."""
        self.report(of=attrs.evolve(failing(on_failure=PUSH), name="x\nERROR y"))
        self.assertEqual(len([line for line in self.log.lines if "\n" in line]), 0)

    def test_unexpected(self) -> None:
        """An unexpected error is told by its kind and place, without its text."""

        def broken(call: Any, *arguments: Any) -> Any:
            raise KeyError("".join(reversed("22retnuh")))

        self.service = self.make(call_in_thread=broken)
        self.assertIsNone(self.successResultOf(self.report(of=failing(on_failure=SHELL))))
        self.assertIn("unexpected KeyError", self.errors()[0])
        self.assertNotIn("hunter22", self.errors()[0])

    def test_bound(self) -> None:
        """A reporter that hangs is cut at its bound, killed and counted."""
        done = self.report(of=failing(on_failure=SHELL))
        self.clock.advance(64.9)
        self.assertNoResult(done)
        self.clock.advance(0.2)
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(self.executor.live, [])
        self.assertEqual(self.service.in_flight, 0)
        self.assertEqual(self.service.counts["shell", "failed"], 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_thread_that_hangs(self) -> None:
        """Work in a thread that never comes back is given up at the bound as well."""
        self.service = self.make(call_in_thread=lambda call, *arguments: Deferred())
        done = self.report(of=failing(on_failure=SHELL))
        self.clock.advance(65.1)
        self.assertIsNone(self.successResultOf(done))
        self.assertIn("not over in time", self.errors()[0])

    def test_fifty_at_once(self) -> None:
        """Of many reports at once some run and the others wait; no caller waits past the bound."""
        done = [self.report(of=failing(on_failure=SHELL)) for _ in range(50)]
        self.assertEqual((len(self.executor.live), self.service.in_flight), (8, 50))
        self.clock.advance(65.1)
        self.assertTrue(all(each.called for each in done))
        self.assertGreater(self.service.in_flight, 0)
        for _ in range(7):
            self.clock.advance(65.1)
        self.assertEqual(self.service.in_flight, 0)
        self.assertEqual(self.service.counts["shell", "failed"], 50)

    def test_others_go_on(self) -> None:
        """A destination that hangs does not hold up another."""
        for _ in range(50):
            self.report(of=failing(on_failure=SHELL))
        self.assertIsNone(self.successResultOf(self.report(of=failing(on_failure=PUSH))))

    def test_too_many(self) -> None:
        """What finds no room to wait is dropped, counted and told."""
        self.service = self.make(lanes=Lanes(at_once=1, per_lane=1, most_waiting=1))
        first, second, third = (self.report(of=failing(on_failure=SHELL)) for _ in range(3))
        self.assertNoResult(second)
        self.assertIsNone(self.successResultOf(third))
        self.assertEqual(self.service.counts["shell", "dropped"], 1)
        self.assertIn("too many reports wait", self.errors()[0])
        self.executor.launches[0].exit(0)
        self.executor.launches[1].exit(0)
        self.assertTrue(first.called and second.called)

    def test_masked(self) -> None:
        """Values of the job's secrets and of the reporters' own are masked in what it printed."""
        of = attrs.evolve(
            failing(
                on_failure=attrs.evolve(
                    SHELL, webhook=WebhookReport(url=Secret(value="ftp://hook/own-5590ab"))
                )
            ),
            secrets=(
                NamedSecret("a", Secret(from_env_var="TOKEN")),
                NamedSecret("b", Secret(from_env_var="NOSUCH")),
            ),
        )
        self.service = self.make(staged=lambda run: ["staged-value"])
        self.report(of=of, stdout="hunter22 staged-value ftp://hook/own-5590ab abcd")
        told = self.executor.launches[0].spec.env["CRONSTABLE_STDOUT"]
        self.assertEqual(told, "*** *** *** abcd")

    def test_secret_missing(self) -> None:
        """A reporter whose secret cannot be had is skipped; the others report."""
        of = failing(
            on_failure=Report(
                shell=ShellReport(command="tell"),
                webhook=WebhookReport(url=Secret(from_env_var="NOSUCH")),
                sentry=SentryReport(dsn=Secret(from_file="/nonexistent/dsn")),
                mail=MailReport(
                    sender="a@example.org",
                    to="b@example.org",
                    username="u",
                    password=Secret(from_file="/nonexistent/password"),
                ),
            )
        )
        self.report(of=of)
        self.executor.launches[0].exit(0)
        self.assertEqual(self.service.counts["shell", "delivered"], 1)
        told = "\n".join(self.errors())
        for key in ("webhook.url.fromEnvVar", "sentry.dsn.fromFile", "mail.password.fromFile"):
            self.assertIn(key, told)
        self.assertNotIn("NOSUCH", told)

    def test_stuck_files(self) -> None:
        """Reading secrets from a dead mount takes a bounded number of threads."""
        stuck: list[Any] = []

        def hang(call: Any, *arguments: Any) -> Deferred[Any]:
            stuck.append(call)
            return Deferred()

        self.service = self.make(call_in_thread=hang, lanes=Lanes(at_once=500, per_lane=500))
        of = attrs.evolve(
            failing(on_failure=SHELL), secrets=(NamedSecret("a", Secret(from_file="/dead/x")),)
        )
        for _ in range(100):
            self.report(of=of)
        self.assertEqual(len(stuck), 64)
        self.assertEqual(self.service.counts["shell", "failed"], 36)
        self.clock.advance(66)

    def test_late(self) -> None:
        """Lateness is reported by C{onLate}."""
        of = failing(on_late=SHELL)
        done = self.service.late(of, "lateAfter", 60, 93.5, None)
        given = self.executor.launches[0].spec.env
        self.assertEqual(given["CRONSTABLE_SLA_CHECK"], "lateAfter")
        self.executor.launches[0].exit(0)
        self.assertIsNone(self.successResultOf(done))
        self.assertIsNone(self.successResultOf(self.service.late(job(), "lateAfter", 1, 2, None)))

    def test_notify(self) -> None:
        """Events are told that the notify section has, once there is one."""
        told = {"name": "etl", "subject": "s", "message": "m"}
        self.assertIsNone(self.successResultOf(self.service.notify("dag_failure", told)))
        self.service.reconfigure(NotifyConfig(events=("dag_failure",), report=SHELL))
        self.assertIsNone(self.successResultOf(self.service.notify("quorum_loss", told)))
        self.assertNoResult(self.service.notify("dag_failure", told))
        given = self.executor.launches[0].spec.env
        self.assertEqual(given["CRONSTABLE_EVENT"], "dag_failure")
        self.executor.launches[0].exit(1)
        self.assertIn("Problem reporting dag_failure etl: shell", self.errors()[0])

    def test_drain(self) -> None:
        """Draining waits for what is in flight and takes nothing more."""
        self.assertIsNone(self.successResultOf(self.service.drain(30)))
        self.service = self.make()
        self.report(of=failing(on_failure=SHELL))
        drained = self.service.drain(30)
        self.assertNoResult(drained)
        self.assertIsNone(self.successResultOf(self.report(of=failing(on_failure=SHELL))))
        self.assertEqual(self.service.counts["shell", "dropped"], 1)
        self.executor.launches[0].exit(0)
        self.assertIsNone(self.successResultOf(drained))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_drain_is_bounded(self) -> None:
        """What is not over when draining ends is cut, told and counted."""
        done = [self.report(of=failing(on_failure=SHELL)) for _ in range(20)]
        drained = self.service.drain(100)
        self.clock.advance(29.9)
        self.assertNoResult(drained)
        self.clock.advance(0.2)
        self.assertIsNone(self.successResultOf(drained))
        self.assertTrue(all(each.called for each in done))
        self.assertEqual(self.executor.live, [])
        counts = self.service.counts
        self.assertEqual((counts["shell", "failed"], counts["shell", "dropped"]), (8, 12))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop(self) -> None:
        """Stopping cuts what is left and leaves no timer."""
        self.executor.on_cancel = lambda launch: None
        done = self.report(of=failing(on_failure=SHELL))
        self.service.startService()
        self.service.stopService()
        self.assertTrue(done.called)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_caller_that_cancels(self) -> None:
        """A caller that stops waiting stops nothing."""
        done = self.report(of=failing(on_failure=SHELL))
        done.cancel()
        self.failureResultOf(done)
        self.executor.launches[0].exit(0)
        self.assertEqual(self.service.counts["shell", "delivered"], 1)


class WholeTests(TestCase):
    """Reports to real sockets, with threads."""

    def setUp(self) -> None:
        self.servers = Servers(self, reactor)
        self.log = watch_log(self)
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.service = ReportService(
            reactor,
            SystemClock(reactor),
            host="node-a",
            environ={},
            executor=FakeExecutor(),
        )
        self.addCleanup(self.service.stopService)

    def file(self, name: str, content: str) -> Secret:
        """Return a secret in a file."""
        path = self.directory / name
        path.write_text(content + "\n")
        return Secret(from_file=str(path))

    async def test_mail_and_webhook(self) -> None:
        """Both are sent at once, with secrets from files, and the output is masked."""
        smtp = ToySmtpFactory(EHLO=b"250-toy\r\n250 AUTH PLAIN", AUTH=b"235 ok")
        hook = ToyHttpFactory(http("500 Oops"), http("200 OK"))
        smtp_port = await self.servers.listen(smtp)
        url = f"http://127.0.0.1:{await self.servers.listen(hook)}/hooktok-77aa31"
        report = Report(
            mail=MailReport(
                sender="a@example.org",
                to="b@example.org",
                smtp_host="127.0.0.1",
                smtp_port=smtp_port,
                username="u",
                password=self.file("smtp", "smtppw-19d7e4"),
            ),
            webhook=WebhookReport(url=self.file("hook", url)),
        )
        run = finished(of=failing(on_failure=report), stdout=f"smtppw-19d7e4 and {url}\n")
        await self.service.report("onFailure", run)
        self.assertEqual(
            self.service.counts, {("mail", "delivered"): 1, ("webhook", "delivered"): 1}
        )
        self.assertEqual(len(hook.requests), 2)
        told = b"\n".join([*smtp.lines, hook.requests[0][1]])
        self.assertIn(b"*** and ***", told)
        self.assertNotIn(b"smtppw-19d7e4", told)
        self.assertNotIn(b"hooktok", told)
        self.assertNotIn("hooktok", "\n".join(self.log.lines))

    async def test_broken_template(self) -> None:
        """A template that is broken fails its own reporter only, without showing values."""
        hook = ToyHttpFactory(http("200 OK"))
        url = f"http://127.0.0.1:{await self.servers.listen(hook)}/x"
        report = Report(
            mail=MailReport(
                sender="a@example.org",
                to="b@example.org",
                smtp_host="127.0.0.1",
                smtp_port=1,
                body="{{ environment.API_TOKEN | nosuchfilter }}",
            ),
            webhook=WebhookReport(url=Secret(value=url)),
        )
        run = finished(of=failing(on_failure=report), environment={"API_TOKEN": "envtok-81f0c2"})
        await self.service.report("onFailure", run)
        self.assertEqual(self.service.counts, {("mail", "failed"): 1, ("webhook", "delivered"): 1})
        self.assertIn("nosuchfilter", "\n".join(self.log.lines))
        self.assertNotIn("envtok", "\n".join(self.log.lines))

    async def test_blank_success(self) -> None:
        """A blank body on success means no mail, and no failure."""
        report = Report(
            mail=MailReport(
                sender="a@example.org",
                to="b@example.org",
                smtp_host="127.0.0.1",
                smtp_port=1,
                body="\n",
            ),
        )
        await self.service.report("onSuccess", finished("success", of=failing(on_success=report)))
        self.assertEqual(self.service.counts, {("mail", "delivered"): 1})

    async def test_sentry(self) -> None:
        """An event reaches the project of the DSN."""
        hook = ToyHttpFactory(http("200 OK"))
        port = await self.servers.listen(hook)
        dsn = Secret(value=f"http://abcdef0123456789@127.0.0.1:{port}/42")
        report = Report(sentry=SentryReport(dsn=dsn))
        await self.service.report("onFailure", finished(of=failing(on_failure=report)))
        self.assertEqual(self.service.counts, {("sentry", "delivered"): 1})
        head, body = hook.requests[0]
        self.assertTrue(head.startswith(b"POST /api/42/envelope/"))
        self.assertIn(b"Cron job 'job' failed", body)
