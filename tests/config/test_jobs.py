"""What each key of a job comes to, and which values are refused."""

from __future__ import annotations

import math
import os
from unittest import mock

from cronstable.config.values import (
    FailsWhen,
    JobConfig,
    Monitor,
    NamedSecret,
    PoolMembership,
    ResourceLimits,
    RetryPolicy,
    Secret,
    Sla,
    Statsd,
    Verify,
)
from tests.config.helpers import STATE, ConfigCase, job, section

RETRY = "maximumRetries: 3\ninitialDelay: 1\nmaximumDelay: 60\nbackoffMultiplier: 2"


def retry(**changes: str) -> str:
    """Return an C{onFailure} block with a retry policy."""
    keys = dict(line.split(": ") for line in RETRY.split("\n")) | changes
    return "onFailure:\n  retry:\n" + "\n".join(f"    {k}: {v}" for k, v in keys.items())


def hook(name: str, reporter: str) -> str:
    """Return a hook with one reporter in flow style."""
    return f"{name}: {{report: {{{reporter}}}}}"


class ValueTests(ConfigCase):
    """Values that are accepted."""

    def test_defaults(self) -> None:
        """A job of three keys is the built-in job."""
        found = self.job()
        expected = JobConfig("a", "echo", "* * * * *", found.schedule)
        self.assertEqual(found, expected)
        self.assertEqual(found.origin.file, "c.yaml")
        self.assertEqual(found.origin.line, 2)

    def test_plain_keys(self) -> None:
        """Keys that need no more than a range go to their fields."""
        for line, field, value in (
            ("shell: /bin/bash", "shell", "/bin/bash"),
            ("enabled: no", "enabled", False),
            ("captureStdout: yes", "capture_stdout", True),
            ("captureStderr: no", "capture_stderr", False),
            ("streamPrefix: 'x '", "stream_prefix", "x "),
            ("saveLimit: 0", "save_limit", 0),
            ("maxLineLength: 1", "max_line_length", 1),
            ("outputGraceSeconds: 0", "output_grace", 0.0),
            ("outputGraceSeconds: 2.5", "output_grace", 2.5),
            ("outputGraceSeconds:", "output_grace", None),
            ("executionTimeout: 0.5", "execution_timeout", 0.5),
            ("executionTimeout: inf", "execution_timeout", math.inf),
            ("killTimeout: 0", "kill_timeout", 0.0),
            ("concurrencyPolicy: Forbid", "concurrency_policy", "Forbid"),
            ("concurrencyPolicy: Replace", "concurrency_policy", "Replace"),
            ("clusterPolicy: EveryNode", "cluster_policy", "EveryNode"),
            ("onMissed: run-all", "on_missed", "run-all"),
            ("startingDeadlineSeconds: 60", "starting_deadline", 60),
            ("catchupJitterSeconds: 5", "catchup_jitter", 5),
            ("catchupLimit: 7", "catchup_limit", 7),
            ("onlyIfLastSucceeded: yes", "only_if_last_succeeded", True),
            ("archiveOutput: yes", "archive_output", True),
            ("redactArchivedSecrets: no", "redact_archived_secrets", False),
            ("stateAllowedScopes: [x, y]", "allowed_scopes", ("x", "y")),
            ("priority: idle", "priority", "idle"),
            ("umask: 022", "umask", 0o022),
            ("umask: '0o77'", "umask", 0o077),
            ("statsd: {prefix: p, host: h, port: 8125}", "statsd", Statsd("p", "h", 8125)),
            ("monitorResources: yes", "monitor", Monitor(True)),
            ("monitorResources: {interval: 0.1}", "monitor", Monitor(True, 0.1)),
            ("monitorResources: {enabled: no, history: 0}", "monitor", Monitor(False, 1.0, 0)),
            ("verify: {command: check}", "verify", Verify("check")),
            ("verify: {command: [a, b], timeout: 5}", "verify", Verify(("a", "b"), 5.0)),
            ("sla: {lateAfterSeconds: 5, maxRuntimeSeconds: }", "sla", Sla(late_after=5)),
            ("failsWhen: {producesStdout: yes}", "fails_when", FailsWhen(produces_stdout=True)),
            (
                "failsWhen: {producesStdout: no, producesStderr: no, nonzeroReturn: no, always: y}",
                "fails_when",
                FailsWhen(False, False, False, True),
            ),
        ):
            self.assertEqual(getattr(self.job(line), field), value, line)

    def test_commands(self) -> None:
        """A command is text, kept as it is, or a list of arguments."""
        listed = self.config("jobs: [{name: a, command: [x, '', y], schedule: '@daily'}]")
        self.assertEqual(listed.jobs["a"].command, ("x", "", "y"))
        empty = self.config("jobs: [{name: a, command: '', schedule: '@daily'}]")
        self.assertEqual(empty.jobs["a"].command, "")
        self.assert_refused("jobs: [{name: a, command: [], schedule: '@daily'}]", "command: must")

    def test_retry(self) -> None:
        """A retry policy has four keys and, ours, a jitter."""
        self.assertEqual(self.job(retry()).retry, RetryPolicy(3, 1.0, 60.0, 2.0))
        found = self.job(retry(maximumRetries="-1", initialDelay="0", jitter="0.5"))
        self.assertEqual(found.retry, RetryPolicy(-1, 0.0, 60.0, 2.0, 0.5))

    def test_schedules(self) -> None:
        """A schedule is kept as it was written, blanks collapsed."""
        for written, text in (
            ('"  */5   * * * *  "', "*/5 * * * *"),
            ('"@Daily"', "@Daily"),
            ('"@reboot"', "@reboot"),
            ('{minute: "*/5"}', "*/5 * * * *"),
            ("{hour: 1, dayOfWeek: MON}", "* 1 * * MON"),
            ("{minute: 0, year: 2030}", "0 * * * * 2030"),
            ("{second: 30}", "30 * * * * * *"),
            (
                "{year: 2030, dayOfWeek: 6, month: 5, dayOfMonth: 4, hour: 3, second: 1}",
                "1 * 3 4 5 6 2030",
            ),
        ):
            found = self.config(f"jobs: [{{name: a, command: x, schedule: {written}}}]").jobs["a"]
            self.assertEqual(found.schedule_text, text)
            self.assertEqual(found.reboot, text == "@reboot")

    def test_zones(self) -> None:
        """A zone wins over C{utc}; without either the schedule runs in UTC."""
        for lines, zone, name in (
            ((), "UTC", "UTC"),
            (("utc: no",), None, "local"),
            (("timezone: Europe/Berlin", "utc: no"), "Europe/Berlin", "Europe/Berlin"),
            (("timezone: Etc/UTC",), "Etc/UTC", "Etc/UTC"),
        ):
            found = self.job(*lines)
            assert found.schedule is not None
            self.assertEqual((found.timezone, found.schedule.zone), (zone, name))

    def test_hashed_schedule(self) -> None:
        """A hashed slot depends on the job's name alone."""
        text = "jobs: [{name: refresh-cache, command: x, schedule: 'H H * * *'}]"
        found = self.config(text).jobs["refresh-cache"]
        assert found.schedule is not None
        self.assertEqual(found.schedule_text, "H H * * *")
        self.assertEqual(found.schedule.resolved, "29 17 * * *")

    def test_working_directory(self) -> None:
        """A working directory becomes absolute against the daemon's; C{~} is its home."""
        self.environ = {"HOME": "/home/cron"}
        for written, path in (
            ("/srv", "/srv"),
            ("sub/../x", os.path.join(self.directory, "x")),
            ("~/x", "/home/cron/x"),
            ("~", "/home/cron"),
        ):
            self.assertEqual(self.job(f"workingDirectory: {written}").working_directory, path)

    def test_limits(self) -> None:
        """Caps are text: numbers, sizes in powers of 1024, or C{max}."""
        for written, expected in (
            ("{cpu: 0.5, memory: 512M, processes: 10}", ResourceLimits(0.5, 512 << 20, 10)),
            ("{cpu: MAX, memory: max, required: yes}", ResourceLimits(required=True)),
            ("{memory: 1.5G}", ResourceLimits(memory=3 << 29)),
            ("{memory: 1 GiB}", ResourceLimits(memory=1 << 30)),
            ("{memory: 2097152b}", ResourceLimits(memory=2097152)),
            ("{memory: 1024kb}", ResourceLimits(memory=1 << 20)),
            ("{cpu: 1e3}", ResourceLimits(cpu=1000.0)),
            ("{memory: 1.0000009m}", ResourceLimits(memory=1048576)),
        ):
            self.assertEqual(self.job(f"resourceLimits: {written}").limits, expected, written)

    def test_secrets(self) -> None:
        """Secrets keep their sources, later ones as spares."""
        lines = "secrets:\n  - {name: db, fromFile: f, fromEnvVar: E}\n  - {name: x, value: abcd}"
        found = self.config(job(lines) + STATE).jobs["a"].secrets
        self.assertEqual(
            found, (NamedSecret("db", Secret(None, "f", "E")), NamedSecret("x", Secret("abcd")))
        )

    def test_pool(self) -> None:
        """A job's place in a pool has four keys."""
        pools = STATE + section("pools", "p: {slots: 3}")
        found = self.config(job("pool: p", "poolSlots: 3", "queueTimeout: 1.5") + pools)
        self.assertEqual(found.jobs["a"].pool, PoolMembership("p", 3, 0, 1.5))

    def test_equal_parts_are_one_object(self) -> None:
        """What many jobs have in common is one object in memory."""
        lines = hook("onFailure", "mail: {from: x, to: y}").replace("\n", "")
        text = "jobs:\n" + "".join(
            f"  - {{name: j{n}, command: x, schedule: '0 0 * * *', {lines}}}\n" for n in range(3)
        )
        one, two, three = self.config(text).jobs.values()
        self.assertIs(one.on_failure, two.on_failure)
        self.assertIs(one.schedule, three.schedule)
        self.assertIs(one.on_success, JobConfig("", "", "", None).on_success)


class RangeTests(ConfigCase):
    """Values that are refused, with key, value and what is allowed."""

    def refused(self, key: str, said: str, *lines: str) -> None:
        """Assert that a job with C{lines} is refused once, about C{key}."""
        self.assert_refused(job(*lines), f"job 'a': {key}: ", said)

    def test_numbers(self) -> None:
        """Numbers out of range are told with the range."""
        for line, said in (
            ("saveLimit: -1", "got -1; at least 0"),
            ("maxLineLength: 0", "got 0; more than 0"),
            ("outputGraceSeconds: -1", "got -1.0; at least 0"),
            ("outputGraceSeconds: nan", "got nan; at least 0"),
            ("executionTimeout: 0", "got 0.0; more than 0"),
            ("executionTimeout: nan", "got nan; more than 0"),
            ("executionTimeout:", "must be a number, got nothing"),
            ("killTimeout: -1", "got -1.0; at least 0"),
            ("startingDeadlineSeconds: 0", "got 0; more than 0"),
            ("catchupJitterSeconds: -1", "got -1; at least 0"),
            ("catchupLimit: 0", "got 0; at least 1"),
        ):
            self.refused(line.split(":")[0], said, line)

    def test_nested_numbers(self) -> None:
        """So are numbers inside blocks."""
        for key, said, line in (
            ("monitorResources.interval", "at least 0.1", "monitorResources: {interval: 0.05}"),
            (
                "monitorResources.history",
                "0 to 2000",
                "monitorResources: {enabled: no, history: 2001}",
            ),
            ("sla.lateAfterSeconds", "more than 0", "sla: {lateAfterSeconds: 0}"),
            ("verify.timeout", "finite and more than 0", "verify: {command: x, timeout: inf}"),
            ("verify.timeout", "finite and more than 0", "verify: {command: x, timeout: 0}"),
            ("onFailure.retry.maximumRetries", "at least -1", retry(maximumRetries="-2")),
            ("onFailure.retry.initialDelay", "at least 0", retry(initialDelay="-1")),
            ("onFailure.retry.maximumDelay", "more than 0", retry(maximumDelay="0")),
            ("onFailure.retry.backoffMultiplier", "more than 0", retry(backoffMultiplier="nan")),
            ("onFailure.retry.jitter", "0 to 1", retry(jitter="1.5")),
            ("resourceLimits.cpu", "0.01 to 1000000", "resourceLimits: {cpu: 0}"),
            ("resourceLimits.cpu", "0.01 to 1000000", "resourceLimits: {cpu: inf}"),
            ("resourceLimits.cpu", "0.01 to 1000000", "resourceLimits: {cpu: }"),
            ("resourceLimits.memory", "1 MiB", "resourceLimits: {memory: 512kib}"),
            ("resourceLimits.memory", "8 EiB", "resourceLimits: {memory: 8388608T}"),
            ("resourceLimits.memory", "not a size", "resourceLimits: {memory: 1e7}"),
            ("resourceLimits.processes", "1 to 4194304", "resourceLimits: {processes: 0}"),
            ("resourceLimits.processes", "1 to 4194304", "resourceLimits: {processes: 4194305}"),
            ("umask", "octal", "umask: 888"),
        ):
            self.refused(key, said, line)

    def test_schedules(self) -> None:
        """A schedule that cannot be read is told with its text and a hint."""
        for written, hint in (
            ("99 * * * *", "99"),
            ("* * * *", "4 fields"),
            ("1 2 3 4 5 6 7 8", "8 fields"),
            ("@midnight", "@daily"),
            ("@every 5m", "nickname"),
            ("0 0 * * 5L", "L5"),
            ("0 0 12 * * ?", "seconds"),
            ("@REBOOT", "reboot"),
            ("", "no fields"),
        ):
            text = f"jobs: [{{name: a, command: x, schedule: '{written}'}}]"
            self.assert_refused(text, f"schedule: invalid schedule '{written}'", hint)

    def test_schedule_mappings(self) -> None:
        """A field of a schedule mapping is one word."""
        for field, value in (("minute", ""), ("hour", "1 2"), ("second", "' '")):
            text = f"jobs: [{{name: a, command: x, schedule: {{{field}: {value}}}}}]"
            self.assert_refused(text, f"schedule.{field}: must be one field without blanks")
        text = "jobs: [{name: a, command: x, schedule: {day: 1}}]"
        self.assert_refused(text, "schedule.day: not recognised")
        text = "jobs: [{name: a, command: x, schedule: {hour: 1:30}}]"
        self.assert_refused(text, "job 'a': schedule: invalid schedule '* 1:30 * * *'")

    def test_undecodable_name(self) -> None:
        """A name of bytes that are no UTF-8 names nothing in URLs and records; a path may."""
        self.environ = {"V": "\udcff"}
        text = "jobs: [{name: 'a${V}', command: x, schedule: '@daily'}]"
        self.assert_refused(text, "name: must be valid UTF-8, got 'a\\udcff'")
        found = self.job("workingDirectory: '/${V}'")
        self.assertEqual(found.working_directory, "/\udcff")

    def test_zones(self) -> None:
        """An unknown or blank zone is refused, whatever the schedule; both are told."""
        self.refused("timezone", "unknown timezone: Foo/Bar", "timezone: Foo/Bar")
        self.refused("timezone", "must not be blank", "timezone:")
        text = "jobs: [{name: a, command: x, schedule: '@reboot', timezone: Foo/Bar}]"
        self.assert_refused(text, "timezone: unknown timezone: Foo/Bar")
        text = "jobs: [{name: a, command: x, schedule: '99 * * * *', timezone: Foo/Bar}]"
        self.assertEqual([each.key for each in self.problems(text)], ["schedule", "timezone"])

    def test_verify(self) -> None:
        """A check must have a command."""
        for written in ("", "' '"):
            text = f"verify: {{command: {written}}}"
            self.refused("verify.command", "must not be blank", text)

    def test_lateness(self) -> None:
        """A reporter of lateness needs something to watch, inherited or not, enabled or not."""
        for reporter in (
            "mail: {from: , to: y}",
            "mail: {from: x, to: }",
            "sentry: {dsn: {fromEnvVar: X}}",
            "shell: {command: x}",
            "webhook: {url: {value: x}}",
            "eventlog: {enabled: yes}",
        ):
            line = hook("onLate", reporter)
            self.refused("onLate", "sla", line, "enabled: no")
            inherited = "defaults:\n  " + line + "\n" + job()
            self.assert_refused(inherited, "c.yaml:2:11: job 'a': onLate: ")
            self.refused("onLate", "sla", line, "sla: {lateAfterSeconds: }")
            self.job(line, "sla: {lateAfterSeconds: 5}")
        self.job(hook("onLate", "mail: {from: , to: }"))

    def test_reports(self) -> None:
        """Contradictory mail options and names of event logs are refused, in every hook."""
        for name in ("onFailure", "onPermanentFailure", "onSuccess"):
            mail = hook(name, "mail: {from: x, to: y, tls: yes, starttls: yes}")
            self.refused(f"{name}.report.mail.starttls", "one of them", mail)
            for source in ("System", "a/b", "'a\\b'", ""):
                log = hook(name, f"eventlog: {{enabled: yes, source: {source}}}")
                self.refused(f"{name}.report.eventlog.source", "source name", log)
            self.job(hook(name, "eventlog: {source: System}"))

    def test_concurrency(self) -> None:
        """A cluster-wide bound needs a policy that bounds."""
        for lines in (
            ("concurrencyScope: cluster",),
            ("concurrencyScope: cluster", "concurrencyPolicy: Allow"),
        ):
            self.refused("concurrencyScope", "Forbid or Replace", *lines)

    def test_secrets(self) -> None:
        """A secret needs a source and a name."""
        for entry, said in (
            ("{name: db}", "'db' has no source"),
            ("{name: db, value: , fromFile: }", "'db' has no source"),
            ("{name: , value: x}", "without a name"),
        ):
            self.assert_refused(job(f"secrets: [{entry}]") + STATE, "job 'a': secrets: ", said)

    def test_pool_keys(self) -> None:
        """Other than standard values of a membership need a pool, also when inherited."""
        for line in ("poolSlots: 2", "queuePriority: 1", "queueTimeout: 5"):
            self.refused(line.split(":")[0], "needs pool", line)
        self.job("poolSlots: 1", "queuePriority: 0", "queueTimeout: 3600")
        inherited = "defaults:\n  pool: p\n  poolSlots: 2\n" + job("pool:")
        self.assert_refused(inherited, "c.yaml:3:14: job 'a': poolSlots: needs pool")
        pools = STATE + section("pools", "p: {slots: 2}")
        for line, said in (
            ("poolSlots: 0", "poolSlots: out of range, got 0; at least 1"),
            ("queueTimeout: 0", "queueTimeout: out of range"),
            ("queueTimeout: inf", "queueTimeout: out of range"),
        ):
            self.assert_refused(job("pool: p", line) + pools, said)

    def test_environment(self) -> None:
        """A variable needs a name that can be one, and a value that can be passed."""
        for entry, said in (
            ("{key: '', value: x}", "a variable without a name"),
            ("{key: 'A=B', value: x}", "begins with 'A'"),
        ):
            self.refused("environment", said, f"environment: [{entry}]")


class AccountTests(ConfigCase):
    """Tests for C{user} and C{group}."""

    is_root = True

    def test_by_name(self) -> None:
        """A user brings its own group and login name; a group alone changes the group only."""
        found = self.job("user: root")
        self.assertEqual((found.uid, found.gid, found.login), (0, 0, "root"))
        found = self.job("group: root")
        self.assertEqual((found.user, found.uid, found.gid, found.login), (None, None, 0, None))

    def test_by_number(self) -> None:
        """A number stands for a user if there is one; as text it is kept as it was."""
        found = self.job("user: 0", "group: 12345")
        self.assertEqual((found.user, found.uid, found.gid, found.login), (0, 0, 12345, "root"))

    def test_number_without_entry(self) -> None:
        """A number that is no user needs a group, and has no login name."""
        self.assert_refused(job("user: 54321"), "job 'a': user: ", "explicit group")
        found = self.job("user: 54321", "group: 54321")
        self.assertEqual((found.uid, found.gid, found.login), (54321, 54321, None))

    def test_unknown(self) -> None:
        """Unknown names and impossible numbers are refused, for a disabled job too."""
        self.assert_refused(job("user: no-such", "enabled: no"), "user: no such user")
        self.assert_refused(job("group: no-such"), "group: no such group, got 'no-such'")
        self.assert_refused(job("user:"), "user: no such user, got ''")
        self.assert_refused(job("user: -1"), "user: out of range")
        self.assert_refused(job("user: 0", "group: 4294967295"), "group: out of range")

    def test_interpolated_stays_text(self) -> None:
        """A number that comes from the environment is a name."""
        self.environ = {"U": "0"}
        self.assert_refused(job("user: ${U}"), "no such user, got '0'")

    def test_without_rights(self) -> None:
        """Any use needs root."""
        for line in ("user: root", "group: root", "user: 0"):
            key = line.split(":")[0]
            self.assert_refused(job(line), f"job 'a': {key}: ", "as root", is_root=False)

    def test_rights_of_the_process(self) -> None:
        """Unless told, a load asks the process for its rights."""
        with mock.patch("os.geteuid", return_value=1000):
            self.assert_refused(job("user: root"), "as root", is_root=None)
        with mock.patch("os.geteuid", return_value=0):
            self.assertEqual(self.job("user: root", is_root=None).uid, 0)
