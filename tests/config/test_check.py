"""What is judged on the whole configuration, and what is worth saying about a valid one."""

from __future__ import annotations

import logging
from unittest import mock

from tests.config.helpers import HEAD, STATE, ConfigCase, job, section, task

PUSH = section("push", "relay: {url: 'https://relay.example.org'}", "devicesFile: d")
PUSH_ON = "onFailure: {report: {push: {enabled: yes}}}"


class CrossTests(ConfigCase):
    """Tests for checks across sections; each names file, line and owner."""

    def test_needs_state(self) -> None:
        """Secrets, cluster-wide bounds and pools need a store."""
        self.assert_refused(
            job("secrets: [{name: x, value: abcd}]", "enabled: no"),
            "c.yaml:2: job 'a': secrets: needs a state section",
        )
        self.assert_refused(
            job("concurrencyScope: cluster", "concurrencyPolicy: Forbid"),
            "job 'a': concurrencyScope: 'cluster' needs a state section",
        )
        self.assert_refused(
            "pools: {p: {slots: 1}, q: {slots: 1}}\n", "c.yaml:1: pools: 'p', 'q': needs a state"
        )

    def test_needs_job_api(self) -> None:
        """Secrets need the job API, of jobs and of tasks."""
        off = section("state", "path: x", "jobApi: {enabled: no}")
        secret = "secrets: [{name: x, value: abcd}]"
        self.assert_refused(job(secret) + off, "job 'a': secrets: needs state.jobApi")
        text = task(secret).replace("path: store", "path: store\n  jobApi: {enabled: no}")
        self.assertIn(
            "dag 'd': task 't': secrets: needs state.jobApi",
            "\n".join(str(each) for each in self.problems(text)),
        )

    def test_every_offender(self) -> None:
        """Every job that lacks something is named."""
        jobs = "jobs:\n" + "".join(
            f"  - {{name: {name}, command: x, schedule: '@daily', "
            "secrets: [{name: s, value: abcd}]}\n"
            for name in ("one", "two")
        )
        self.assertEqual([each.where for each in self.problems(jobs)], ["job 'one'", "job 'two'"])

    def test_pools(self) -> None:
        """A pool exists and has room for the slots that are asked for."""
        pools = STATE + section("pools", "p: {slots: 2}")
        self.assert_refused(
            job("pool: q", "enabled: no") + pools,
            "job 'a': pool: no such pool, got 'q'; known under pools: p",
        )
        self.assert_refused(job("pool: q") + STATE, "none is configured")
        self.assert_refused(
            job("pool: p", "poolSlots: 3") + pools, "poolSlots: out of range, got 3; 1 to 2"
        )

    def test_template_names(self) -> None:
        """A task runs under a name that no job and no other task has."""
        self.assert_refused(
            task() + "jobs: [{name: d.t, command: x, schedule: '@daily'}]\n",
            "dag 'd': task 't': id: runs under the name 'd.t', as does job 'd.t'",
        )
        text = f"""{STATE}dags:
  - {{name: a, tasks: [{{id: b.c, command: x}}]}}
  - {{name: a.b, tasks: [{{id: c, command: x}}]}}
"""
        self.assert_refused(text, "dag 'a.b': task 'c': id: ", "as does dag 'a': task 'b.c'")
        self.assert_refused(
            task() + "jobs: [{name: 'dag:d', command: x, schedule: '@daily'}]\n",
            "job 'dag:d': name: is what the schedule of dag 'd' is called",
        )
        self.config(task() + "jobs: [{name: d, command: x, schedule: '@daily'}]\n")


class PushTests(ConfigCase):
    """Tests for C{push} and the reporter of that name."""

    def setUp(self) -> None:
        """Have the encryption library, as far as the checks can see."""
        super().setUp()
        patch = mock.patch("cronstable.config.check.find_spec", return_value=object())
        self.spec = patch.start()
        self.addCleanup(patch.stop)

    def test_reporter_needs_section(self) -> None:
        """Whoever reports by push needs the section, disabled or not, told by hook."""
        for text, said in (
            (job(PUSH_ON, "enabled: no"), "job 'a': onFailure.report.push.enabled: needs a push"),
            (task(PUSH_ON), "dag 'd': task 't': onFailure.report.push.enabled: needs a push"),
            (
                section("notify", "report: {push: {enabled: yes}}"),
                "c.yaml:1: notify.report.push.enabled: needs a push section",
            ),
        ):
            self.assert_refused(text, said)
            self.config(text + PUSH)

    def test_devices(self) -> None:
        """The devices are kept in the store or in a file."""
        bare = section("push", "relay: {url: 'https://relay.example.org'}")
        self.assert_refused(bare, "push.devicesFile: required while there is no state section")
        self.config(bare + STATE)

    def test_library(self) -> None:
        """The section needs its library."""
        self.spec.return_value = None
        self.assert_refused(PUSH, "c.yaml:1: push: needs the PyNaCl library")

    def test_relay(self) -> None:
        """The relay is a web address, and its timeout above zero."""
        for url in ("", "ftp://x", "relay"):
            text = section("push", f"relay: {{url: '{url}'}}", "devicesFile: d")
            self.assert_refused(text, "push.relay.url: must be an http:// or https:// URL")
        text = section("push", "relay: {url: 'http://x', timeout: 0}", "devicesFile: d")
        self.assert_refused(text, "push.relay.timeout: out of range")

    def test_open_listeners(self) -> None:
        """Without a token the API is not served to a network."""
        web = section("web", "listen: ['http://0.0.0.0:1']")
        self.assert_refused(PUSH + web, "push: would be served without a token on")
        self.config(PUSH + "  allowUnauthenticated: yes\n" + web)
        self.config(PUSH + web + "  authToken: {value: x}\n")


class OtherSectionTests(ConfigCase):
    """Tests for C{notify} and C{logging}."""

    def test_notify(self) -> None:
        """All events are told unless some are named."""
        found = self.config(section("notify", "events: [dag_failure, dag_failure]")).notify
        assert found is not None
        self.assertEqual(found.events, ("dag_failure",))
        found = self.config("notify: {}\n").notify
        assert found is not None
        self.assertEqual(len(found.events), 4)
        self.assert_refused(section("notify", "events: [x]"), "notify.events[0]: unknown value")
        self.assert_refused(
            section("notify", "report: {mail: {from: a, to: b, tls: yes, starttls: yes}}"),
            "notify.report.mail.starttls: ",
        )

    def test_logging(self) -> None:
        """Known keys are typed, the rest is passed on as text."""
        found = self.config(
            section(
                "logging",
                "version: 1",
                "disable_existing_loggers: no",
                "handlers: {x: {class: nope.Nope, n: 5, l: [1, {a: }]}}",
                "root: {level: INFO}",
            )
        ).logging
        self.assertEqual(
            found,
            {
                "version": 1,
                "disable_existing_loggers": False,
                "handlers": {"x": {"class": "nope.Nope", "n": "5", "l": ["1", {"a": ""}]}},
                "root": {"level": "INFO"},
            },
        )
        self.assert_refused("logging: {root: {}}\n", "logging.version: required")
        self.assert_refused("logging: {version: x}\n", "logging.version: must be a whole number")
        self.assert_refused("logging: {version: 1, x: 1}\n", "logging.x: not recognised")
        self.assert_refused("logging: {version: 1, incremental: maybe}\n", "must be a boolean")


class NoticeTests(ConfigCase):
    """Tests for what is said about a configuration that is valid."""

    def test_nothing(self) -> None:
        """A plain configuration gives nothing to say."""
        self.assert_notices(HEAD + STATE)

    def test_lint(self) -> None:
        """Remarks on schedules carry their code, warnings as warnings, notes as notes."""
        text = "jobs: [{name: a, command: x, schedule: '0 0 30 2 *'}]\n"
        self.assert_notices(text, "job 'a': schedule '0 0 30 2 *': [never-fires] ")
        self.assertEqual(self.load(text).notices[0].level, logging.WARNING)
        text = "jobs: [{name: a, command: x, schedule: 'H * * * *'}]\n"
        self.assertEqual(self.load(text).notices[0].level, logging.INFO)
        text = task().replace("- name: d\n", "- name: d\n    schedule: '0 0 31 2 *'\n")
        self.assert_notices(text, "dag 'd': schedule '0 0 31 2 *': [never-fires] ")

    def test_inert_without_store(self) -> None:
        """Keys that need a store are told in one line each, with the jobs' names."""
        jobs = "jobs:\n" + "".join(
            f"  - {{name: {name}, command: x, schedule: '@daily', onMissed: run-all, "
            "archiveOutput: yes, onlyIfLastSucceeded: yes}\n"
            for name in ("one", "two")
        )
        self.assert_notices(
            jobs,
            "onMissed has no effect without a state section: one, two",
            "archiveOutput has no effect without a state section: one, two",
            "onlyIfLastSucceeded goes by this process's memory without a state section: one, two",
        )
        levels = [each.level for each in self.load(jobs).notices]
        self.assertEqual(levels, [logging.WARNING, logging.WARNING, logging.INFO])
        self.assert_notices(jobs + STATE)
        silent = (
            "startingDeadlineSeconds: 5",
            "catchupJitterSeconds: 5",
            "stateAllowedScopes: [x]",
        )
        self.assert_notices(job(*silent, "clusterPolicy: EveryNode", "redactArchivedSecrets: no"))

    def test_many_names(self) -> None:
        """A line names a hundred jobs and counts the rest."""
        jobs = "jobs:\n" + "".join(
            f"  - {{name: j{n}, command: x, schedule: '@daily', archiveOutput: yes}}\n"
            for n in range(150)
        )
        (notice,) = self.load(jobs).notices
        self.assertTrue(notice.text.endswith("j98, j99 and 50 more"))

    def test_names_that_look_alike(self) -> None:
        """Names that differ only in how an accent is written are told, with what differs."""
        jobs = "".join(
            f'  - name: "{name}"\n    command: x\n    schedule: "* * * * *"\n'
            for name in ("\\xf1", "n\\u0303", "n", "a", "A")
        )
        self.assert_notices("jobs:\n" + jobs, "'\\xf1' and 'n\\u0303'")

    def test_stream_prefix(self) -> None:
        """A prefix with other braces is used as it is, and that is said."""
        for prefix in ("{x}", "{", "}", "{job_name", "{}", "{0}", "{job_name.x}", "{job_name:%}"):
            self.assert_notices(job(f"streamPrefix: '{prefix}'"), "job 'a': streamPrefix: only")
        for prefix in ("", "x ", "{job_name}|{stream_name} ", "{job_name:>8}", "{{x}}"):
            self.assert_notices(job(f"streamPrefix: '{prefix}'"))

    def test_short_secrets(self) -> None:
        """A secret too short to be masked is told by name, where it can be known."""
        self.environ = {"SHORT": "abc", "LONG": "abcd"}
        for source, count in (
            ("value: abc", 1),
            ("value: abcd", 0),
            ("fromEnvVar: SHORT", 1),
            ("fromEnvVar: LONG", 0),
            ("fromEnvVar: NONE", 0),
            ("fromFile: f, fromEnvVar: SHORT", 0),
        ):
            text = job(f"secrets: [{{name: db, {source}}}]") + STATE
            self.assert_notices(text, *["job 'a': secrets: 'db' is shorter than 4"] * count)

    def test_priority(self) -> None:
        """A raised priority may be refused without the rights of root."""
        for level, count in (("high", 1), ("above-normal", 1), ("idle", 0), ("normal", 0)):
            text = job(f"priority: {level}")
            self.assert_notices(text, *["and may be refused: a"] * count)
            self.assert_notices(text, is_root=True)

    def test_event_log(self) -> None:
        """The event log of Windows is told to be absent elsewhere, with the hooks."""
        text = job("onFailure: {report: {eventlog: {enabled: yes}}}") + section(
            "notify", "report: {eventlog: {enabled: yes}}"
        )
        self.assert_notices(text, "except on Windows: job 'a': onFailure, notify")

    def test_crontabs(self) -> None:
        """Remarks on a crontab carry its file and line."""
        self.write("crontab", "MAILTO=ops@example.org\n* * * * * x\n")
        notices = self.load_path("crontab").notices
        self.assertEqual(["crontab:1" in each.text for each in notices], [True])
