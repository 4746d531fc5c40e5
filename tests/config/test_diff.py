"""What a reload is said to change."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config import keys
from cronstable.config.diff import Diff, NamedDiff, changed_keys, diff
from cronstable.config.sections_values import Config, DagConfig, PoolConfig, TaskConfig, WebConfig
from cronstable.config.values import JobConfig, MailReport, Origin, Report, RetryPolicy, Secret


def job(name: str = "a", **changes: Any) -> JobConfig:
    """Return a job."""
    return JobConfig(
        name, **{"command": "x", "schedule_text": "@daily", "schedule": None, **changes}
    )


def dag(*tasks: TaskConfig, **changes: Any) -> DagConfig:
    """Return a workflow."""
    return DagConfig("etl", tasks, **changes)


def of_jobs(*jobs: JobConfig, **sections: Any) -> Config:
    """Return a configuration of jobs."""
    return Config({each.name: each for each in jobs}, **sections)


class DiffTests(SynchronousTestCase):
    """Tests for L{diff}."""

    def test_equal(self) -> None:
        """Equal configurations do not differ, nor do they for where a job is written."""
        self.assertEqual(diff(of_jobs(job()), of_jobs(job(origin=Origin("f", 9)))), Diff())
        self.assertFalse(diff(of_jobs(job()), of_jobs(job())))

    def test_jobs(self) -> None:
        """Jobs that came, went and differ are told, the latter with their keys."""
        old = of_jobs(job("a"), job("b"), job("c"))
        new = of_jobs(job("d"), job("c", command="y", schedule_text="@hourly"), job("a"))
        self.assertEqual(
            diff(old, new).jobs, NamedDiff(("d",), ("b",), (("c", ("command", "schedule")),))
        )

    def test_sections(self) -> None:
        """Sections that came, went or differ are told by name."""
        web = WebConfig(("http://127.0.0.1:1",))
        self.assertEqual(diff(of_jobs(), of_jobs(web=web, logging={})).sections, ("web", "logging"))
        self.assertEqual(diff(of_jobs(web=web), of_jobs()).sections, ("web",))
        self.assertTrue(diff(of_jobs(web=web), of_jobs()))

    def test_workflows_and_pools(self) -> None:
        """So are workflows and pools."""
        old = Config(dags={"etl": dag()}, pools={"db": PoolConfig("db", 1)})
        new = Config(
            dags={"etl": dag(retain_runs=5)},
            pools={"db": PoolConfig("db", 2), "x": PoolConfig("x", 1)},
        )
        found = diff(old, new)
        self.assertEqual(found.dags.changed, (("etl", ("retainRuns",)),))
        self.assertEqual(found.pools, NamedDiff(("x",), (), (("db", ("slots",)),)))


class ChangedKeysTests(SynchronousTestCase):
    """Tests for L{changed_keys}."""

    def test_every_field_has_its_key(self) -> None:
        """Every field is told by a key that the configuration accepts."""
        blocks = (
            (job(), {*keys.JOB.fields, "onFailure.retry"}),
            (dag(), set(keys.DAG.fields)),
            (TaskConfig("t", job()), set(keys.TASK.fields)),
            (PoolConfig("p", 1), {"name", "slots", "maxQueued"}),
        )
        for value, allowed in blocks:
            for field in attrs.fields(type(value)):
                if not field.eq or field.name == "job":
                    continue
                changed = () if field.name == "tasks" else object()
                if field.name == "tasks":
                    value = attrs.evolve(value, tasks=(TaskConfig("t", job()),))
                found = changed_keys(value, attrs.evolve(value, **{field.name: changed}))
                self.assertEqual(len(found), 1, field.name)
                self.assertIn(found[0], allowed, field.name)

    def test_reporters(self) -> None:
        """Of a hook the reporters that differ are told."""
        new = job(
            on_failure=Report(mail=MailReport("a", "b")), retry=RetryPolicy(1), on_late=Report()
        )
        found = changed_keys(job(), new)
        self.assertIn("onFailure.retry", found)
        self.assertIn("onFailure.report.mail", found)
        self.assertNotIn("onFailure.report.sentry", found)
        self.assertIn("onLate.report.mail", found)

    def test_once(self) -> None:
        """A key that shows in several fields is told once."""
        new = job(user="root", uid=0, gid=0, login="root")
        self.assertEqual(changed_keys(job(), new), ("user", "group"))

    def test_tasks(self) -> None:
        """Tasks that came or went are told as such, others by the keys of their own."""
        one, two = TaskConfig("one", job("etl.one")), TaskConfig("two", job("etl.two"))
        new = TaskConfig("one", job("etl.one", shell="/bin/bash"), depends_on=("two",), retries=1)
        self.assertEqual(changed_keys(dag(one), dag(one, two)), ("tasks",))
        self.assertEqual(
            changed_keys(dag(one, two), dag(new, two)),
            ("tasks.one.shell", "tasks.one.dependsOn", "tasks.one.retries"),
        )


class LinesTests(SynchronousTestCase):
    """Tests for what is logged."""

    def test_lines(self) -> None:
        """Each kind of change has a line, and each changed thing one of its own."""
        change = Diff(
            NamedDiff(("a", "b"), ("long",), (("tick", ("command", "schedule")),)),
            dags=NamedDiff(removed=("etl",)),
            sections=("web", "state"),
        )
        self.assertEqual(
            change.lines(),
            [
                "Jobs added: a, b",
                "Jobs removed: long",
                "Job tick changed: command, schedule",
                "Workflows removed: etl",
                "Sections changed: web, state",
            ],
        )

    def test_bounded(self) -> None:
        """A change of thousands of jobs takes a few lines."""
        names = tuple(map(str, range(5000)))
        change = Diff(NamedDiff(names, names, tuple((name, ("shell",)) for name in names)))
        lines = change.lines()
        self.assertEqual(len(lines), 23)
        self.assertTrue(lines[0].endswith(", 19 and 4980 more"))
        self.assertEqual(lines[-1], "Jobs changed: 4980 more")

    def test_no_values(self) -> None:
        """A changed secret is told by its key alone."""
        new = job(on_success=Report(mail=MailReport(password=Secret("hunter2"))))
        lines = diff(of_jobs(job()), of_jobs(new)).lines()
        self.assertEqual(lines, ["Job a changed: onSuccess.report.mail"])
