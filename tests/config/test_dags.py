"""Workflows: their keys, their tasks and their graph."""

from __future__ import annotations

from cronstable.config.sections_values import DagConfig, Expansion, TaskConfig
from cronstable.config.values import STANDARD_REPORT, JobConfig, RetryPolicy, Verify
from tests.config.helpers import STATE, ConfigCase, section, task


def dag(*tasks: str, keys: str = "") -> str:
    """Return a workflow C{d} of tasks in flow style, with C{keys} before them."""
    return f"{STATE}dags: [{{name: d, {keys}tasks: [{', '.join(tasks)}]}}]\n"


def plain(name: str, more: str = "") -> str:
    """Return a plain task."""
    return f"{{id: {name}, command: x{', ' if more else ''}{more}}}"


class DagCase(ConfigCase):
    """A test case for workflows."""

    def dag(self, text: str) -> DagConfig:
        """Return the workflow C{d} of C{text}."""
        return self.config(text).dags["d"]

    def task(self, *lines: str) -> TaskConfig:
        """Return the task C{t} with C{lines}."""
        return self.dag(task(*lines)).tasks[0]


class DagTests(DagCase):
    """Tests for the keys of a workflow."""

    def test_defaults(self) -> None:
        """A name and a task are enough; it is then started by hand."""
        template = JobConfig("d.t", "x", "@reboot", None)
        self.assertEqual(self.dag(dag(plain("t"))), DagConfig("d", (TaskConfig("t", template),)))

    def test_values(self) -> None:
        """Every key goes to its field."""
        found = self.dag(
            dag(
                plain("t"),
                keys="schedule: '0 5 * * *', timezone: Asia/Tokyo, onMissed: run-once, "
                "startingDeadlineSeconds: 60, catchupJitterSeconds: 5, clusterPolicy: EveryNode, "
                "enabled: no, retainRuns: 1, ",
            )
        )
        assert found.schedule is not None
        self.assertEqual(found.schedule.zone, "Asia/Tokyo")
        self.assertEqual(
            (
                found.schedule_text,
                found.timezone,
                found.on_missed,
                found.starting_deadline,
                found.catchup_jitter,
                found.cluster_policy,
                found.enabled,
                found.retain_runs,
            ),
            ("0 5 * * *", "Asia/Tokyo", "run-once", 60, 5, "EveryNode", False, 1),
        )
        self.assertIs(self.dag(dag(plain("t"), keys="startingDeadlineSeconds: , ")).schedule, None)

    def test_hashed_schedule(self) -> None:
        """Hashed slots depend on the workflow's name, apart from a job's of that name."""
        text = dag(plain("t"), keys="schedule: 'H H * * *', ")
        jobs = "jobs: [{name: 'dag:e', command: x, schedule: 'H H * * *'}]\n"
        found = self.config(text + jobs)
        ours, other = found.dags["d"].schedule, found.jobs["dag:e"].schedule
        assert ours is not None and other is not None
        self.assertNotEqual(ours.resolved, other.resolved)
        self.assertEqual(
            ours,
            self.config("jobs: [{name: 'dag:d', command: x, schedule: 'H H * * *'}]\n")
            .jobs["dag:d"]
            .schedule,
        )

    def test_frame_has_no_defaults(self) -> None:
        """The zone of defaults is for jobs."""
        text = "defaults: {timezone: Asia/Tokyo, utc: no}\n"
        found = self.dag(text + dag(plain("t"), keys="schedule: '@daily', "))
        self.assertEqual((found.timezone, found.utc), ("UTC", True))

    def test_checks(self) -> None:
        """Values out of range are told with the workflow's name."""
        for key, said in (
            ("retainRuns: 0", "retainRuns: out of range, got 0; at least 1"),
            ("startingDeadlineSeconds: 0", "startingDeadlineSeconds: out of range"),
            ("catchupJitterSeconds: -1", "catchupJitterSeconds: out of range"),
            ("schedule: '@reboot'", "schedule: a workflow cannot start at boot"),
            ("schedule: '99 * * * *'", "schedule: invalid schedule"),
            ("schedule: ''", "schedule: invalid schedule"),
            ("timezone: Foo/Bar", "timezone: unknown timezone"),
            ("concurrencyPolicy: Allow", "concurrencyPolicy: not recognised"),
        ):
            self.assert_refused(dag(plain("t"), keys=f"{key}, "), f"dag 'd': {said}")

    def test_needs(self) -> None:
        """It has a name, a task, and a store with the job API on."""
        for text, said in (
            (f"{STATE}dags: [{{name: '', tasks: [{plain('t')}]}}]", "dags[0]: name: must not be"),
            (f"{STATE}dags: [{{tasks: [{plain('t')}]}}]", "dags[0]: name: required"),
            (f"{STATE}dags: [{{name: d}}]", "dag 'd': tasks: required"),
            (dag(), "dag 'd': tasks: must hold at least 1 task"),
            (f"dags: [{{name: d, tasks: [{plain('t')}]}}]", "dag 'd': needs a state section"),
            (
                dag(plain("t")).replace("path: store", "path: store\n  jobApi: {enabled: no}"),
                "dag 'd': needs state.jobApi, which is off",
            ),
        ):
            self.assert_refused(text, said)


class TaskTests(DagCase):
    """Tests for the keys of a task."""

    def test_values(self) -> None:
        """Every key of the graph goes to its field."""
        for line, field, value in (
            ("retries: 2", "retries", 2),
            ("retryDelaySeconds: 1.5", "retry_delay", 1.5),
            ("type: sensor", "type", "sensor"),
            ("triggerRule: all_done", "trigger_rule", "all_done"),
            ("pokeIntervalSeconds: 5", "poke_interval", 5.0),
            ("pokeTimeoutSeconds: 5", "poke_timeout", 5.0),
            ("pokeJitterSeconds: 5", "poke_jitter", 5.0),
            ("onReject: skip", "on_reject", "skip"),
        ):
            self.assertEqual(getattr(self.task(line), field), value)

    def test_negative_waits(self) -> None:
        """A wait below zero, or none that is a number, is none."""
        for key, field in (
            ("retryDelaySeconds", "retry_delay"),
            ("pokeIntervalSeconds", "poke_interval"),
            ("pokeTimeoutSeconds", "poke_timeout"),
            ("pokeJitterSeconds", "poke_jitter"),
        ):
            for written in ("-1", "nan"):
                self.assertEqual(getattr(self.task(f"{key}: {written}"), field), 0.0)

    def test_launch_keys(self) -> None:
        """Launch keys mean what they mean for a job."""
        found = self.task(
            "shell: /bin/bash",
            "environment: [{key: A, value: b}]",
            "saveLimit: 5",
            "executionTimeout: 3",
            "verify: {command: check}",
            "onFailure: {report: {mail: {from: a, to: b}}}",
        ).job
        self.assertEqual(
            (found.name, found.shell, found.environment, found.save_limit),
            ("d.t", "/bin/bash", (("A", "b"),), 5),
        )
        self.assertEqual((found.execution_timeout, found.verify), (3.0, Verify("check")))
        self.assertEqual(found.on_failure.mail.to, "b")

    def test_defaults(self) -> None:
        """Tasks inherit launch keys and reports, but no retry, schedule or policy."""
        text = """defaults:
  shell: /bin/bash
  timezone: Asia/Tokyo
  concurrencyPolicy: Forbid
  onlyIfLastSucceeded: yes
  enabled: no
  sla: {lateAfterSeconds: 5}
  onPermanentFailure: {report: {mail: {from: a, to: b}}}
  onFailure:
    retry: {maximumRetries: 3, initialDelay: 1, maximumDelay: 60, backoffMultiplier: 2}
    report: {mail: {from: a, to: b}}
"""
        found = self.dag(text + task("saveLimit: 1")).tasks[0].job
        self.assertEqual((found.shell, found.save_limit), ("/bin/bash", 1))
        self.assertEqual(found.on_failure.mail.to, "b")
        self.assertEqual(found.retry, RetryPolicy())
        self.assertEqual(found.on_permanent_failure, STANDARD_REPORT)
        self.assertEqual(
            (found.timezone, found.concurrency_policy, found.enabled), ("UTC", "Allow", True)
        )

    def test_checks(self) -> None:
        """Values that do not fit are told with workflow and task."""
        for line, said in (
            ("retries: -1", "retries: out of range, got -1; at least 0"),
            ("retries: 1.0", "retries: must be a whole number"),
            ("saveLimit: -1", "saveLimit: out of range"),
            ("triggerRule: x", "triggerRule: unknown value"),
            ("poolSlots: 2", "poolSlots: needs pool"),
            ("schedule: '@daily'", "schedule: not recognised"),
            ("concurrencyPolicy: Allow", "concurrencyPolicy: not recognised"),
            ("onFailure: {retry: {maximumRetries: 1}}", "onFailure.retry: not recognised"),
            ("pool: none", "pool: no such pool"),
        ):
            self.assert_refused(task(line), f"dag 'd': task 't': {said}")

    def test_ids(self) -> None:
        """An id can stand in a path and is unique."""
        for name in ("''", "a#b", "a/b", '"a\\tb"', '"a\\x7fb"'):
            self.assert_refused(dag(plain(name)), "id: ")
        self.assert_refused(dag(plain("t"), plain("t")), "tasks[1].id: two tasks are called 't'")
        self.assert_refused(dag("{command: x}"), "dag 'd': tasks[0]: id: required")

    def test_command(self) -> None:
        """Whatever runs something needs a command."""
        self.assert_refused(dag("{id: t}"), "dag 'd': task 't': command: required")
        self.assert_refused(dag("{id: t, type: sensor}"), "task 't': command: required")

    def test_approvals(self) -> None:
        """An approval runs nothing: no pool, check or limits, inherited ones are dropped."""
        found = self.dag(dag("{id: t, type: approval}")).tasks[0]
        self.assertEqual(found.job.command, "true")
        for key in ("pool: p", "verify: {command: x}", "resourceLimits: {cpu: 1}"):
            text = dag(f"{{id: t, type: approval, {key}}}") + section("pools", "p: {slots: 1}")
            self.assert_refused(text, f"task 't': {key.split(':')[0]}: an approval runs nothing")
        text = "defaults: {verify: {command: x}, pool: p, poolSlots: 9, resourceLimits: {cpu: 1}}\n"
        found = self.dag(text + dag("{id: t, type: approval}")).tasks[0]
        self.assertEqual(
            (found.job.pool, found.job.verify, found.job.limits.any), (None, None, False)
        )


class GraphTests(DagCase):
    """Tests for how tasks depend on each other."""

    def test_edges(self) -> None:
        """A repeated dependency is one edge."""
        found = self.dag(dag(plain("a"), plain("b"), plain("c", "dependsOn: [b, a, b]")))
        self.assertEqual(found.tasks[2].depends_on, ("b", "a"))
        self.assertIs(found.task("c"), found.tasks[2])
        self.assertIs(found.task("d"), None)

    def test_bad_edges(self) -> None:
        """A task depends on other tasks of its workflow."""
        self.assert_refused(
            dag(plain("a", "dependsOn: [a]")), "dag 'd': tasks[0].dependsOn", "depends on itself"
        )
        self.assert_refused(dag(plain("a", "dependsOn: [z]")), "on 'z', which is no task here")

    def test_cycles(self) -> None:
        """Tasks that wait for each other are told in order."""
        text = dag(
            plain("a", "dependsOn: [c]"),
            plain("b", "dependsOn: [a, x]"),
            plain("c", "dependsOn: [b]"),
            plain("x"),
            plain("y", "dependsOn: [c]"),
        )
        self.assert_refused(text, "the tasks wait for each other: ", "a -> c -> b -> a")

    def test_long_chains(self) -> None:
        """A chain of thousands of tasks is checked in one pass."""
        tasks = [plain("t0")]
        tasks += [plain(f"t{n}", f"dependsOn: [t{n - 1}]") for n in range(1, 3000)]
        self.assertEqual(len(self.dag(dag(*tasks)).tasks), 3000)

    def test_expansion(self) -> None:
        """A mapped task expands what a direct, unmapped dependency publishes."""
        expand = "expand: {fromTask: a, key: k}"
        found = self.dag(dag(plain("a"), plain("b", f"dependsOn: [a], {expand}")))
        self.assertEqual(found.tasks[1].expand, Expansion("a", "k"))
        for tasks, said in (
            ((plain("a"), plain("b", expand)), "must be one of its dependsOn, got 'a'"),
            (
                (
                    plain("z"),
                    plain("a", "dependsOn: [z], expand: {fromTask: z, key: k}"),
                    plain("b", f"dependsOn: [a], {expand}"),
                ),
                "'a' is mapped itself",
            ),
            (
                (plain("a"), plain("b", f"dependsOn: [a], type: sensor, {expand}")),
                "expand: a sensor cannot be mapped",
            ),
            ((plain("a"), plain("b", "expand: {fromTask: a}")), "expand.key: required"),
        ):
            self.assert_refused(dag(*tasks), said)
