"""How defaults and jobs lie over each other: the table of docs/configuration.md."""

from __future__ import annotations

from cronstable.config.values import FailsWhen, Monitor, NamedSecret, RetryPolicy, Secret, Verify
from tests.config.helpers import STATE, ConfigCase, job

RETRY = """onFailure:
  retry:
    maximumRetries: 3
    initialDelay: 5
    maximumDelay: 60
    backoffMultiplier: 1.5
  report:
    mail:
      from: cron@example.org
      to: ops@example.org
      smtpHost: smtp.example.org
"""


def defaults(text: str) -> str:
    """Return a C{defaults} section."""
    return "defaults:\n" + "".join(f"  {line}\n" for line in text.rstrip("\n").split("\n"))


class MergeTests(ConfigCase):
    """Two layers, and what comes of them."""

    def test_inherited(self) -> None:
        """What a job does not say, its file's defaults say, else the built-ins."""
        found = self.config(defaults("saveLimit: 7\nshell: /bin/bash") + job("saveLimit: 8"))
        self.assertEqual(found.jobs["a"].save_limit, 8)
        self.assertEqual(found.jobs["a"].shell, "/bin/bash")
        self.assertEqual(found.jobs["a"].kill_timeout, 30.0)

    def test_order_of_the_file(self) -> None:
        """Defaults written after the jobs count as much."""
        found = self.config(job() + defaults("saveLimit: 7"))
        self.assertEqual(found.jobs["a"].save_limit, 7)

    def test_mappings(self) -> None:
        """Mappings merge key by key, at every depth."""
        lines = "onFailure:\n  report:\n    mail:\n      from: x\n      to: dev@example.org"
        found = self.config(defaults(RETRY) + job(lines)).jobs["a"]
        self.assertEqual(found.retry, RetryPolicy(3, 5.0, 60.0, 1.5))
        mail = found.on_failure.mail
        self.assertEqual(
            (mail.sender, mail.to, mail.smtp_host), ("x", "dev@example.org", "smtp.example.org")
        )
        found = self.config(
            defaults("failsWhen: {producesStdout: yes, always: yes}")
            + job("failsWhen: {producesStdout: no, producesStderr: no}")
        ).jobs["a"]
        self.assertEqual(found.fails_when, FailsWhen(False, False, True, True))

    def test_blank_over_scalar(self) -> None:
        """A blank opts out of an inherited scalar where it means null."""
        text = defaults("workingDirectory: /srv\nstartingDeadlineSeconds: 5")
        found = self.config(text + job("workingDirectory:", "startingDeadlineSeconds:")).jobs["a"]
        self.assertIs(found.working_directory, None)
        self.assertIs(found.starting_deadline, None)

    def test_blank_verify(self) -> None:
        """A blank C{verify} opts out of an inherited one."""
        text = defaults("verify: {command: check, timeout: 5}")
        self.assertEqual(self.config(text + job()).jobs["a"].verify, Verify("check", 5.0))
        self.assertIs(self.config(text + job("verify:")).jobs["a"].verify, None)
        found = self.config(text + job("verify: {command: other}"))
        self.assertEqual(found.jobs["a"].verify, Verify("other", 5.0))

    def test_environment(self) -> None:
        """Environments unite by key, the later value in the earlier place."""
        text = defaults("environment:\n- {key: A, value: '1'}\n- {key: B, value: '2'}")
        lines = "environment:\n- {key: C, value: '3'}\n- {key: A, value: '4'}"
        found = self.config(text + job(lines)).jobs["a"].environment
        self.assertEqual(found, (("A", "4"), ("B", "2"), ("C", "3")))

    def test_repeats_in_one_list(self) -> None:
        """A key repeated within one list counts once, with its last value."""
        lines = "environment:\n- {key: A, value: '1'}\n- {key: A, value: '2'}"
        self.assertEqual(self.job(lines).environment, (("A", "2"),))
        self.assertEqual(self.config(defaults(lines) + job()).jobs["a"].environment, (("A", "2"),))

    def test_secrets(self) -> None:
        """Secrets unite by name, a whole entry replacing the other."""
        text = defaults("secrets:\n- {name: x, fromFile: f}\n- {name: y, value: yyyy}")
        lines = "secrets:\n- {name: x, fromEnvVar: X}"
        self.assertEqual(
            self.config(STATE + text + job(lines)).jobs["a"].secrets,
            (NamedSecret("x", Secret(from_env_var="X")), NamedSecret("y", Secret("yyyy"))),
        )

    def test_fingerprint(self) -> None:
        """A sentry fingerprint is replaced."""
        text = "onFailure: {report: {sentry: {fingerprint: [%s]}}}"
        found = self.config(defaults(text % "a, b") + job(text % "c")).jobs["a"]
        self.assertEqual(found.on_failure.sentry.fingerprint, ("c",))

    def test_other_lists(self) -> None:
        """All other lists are joined, the default's items first; argument lists too."""
        text = defaults("stateAllowedScopes: [x]\nverify: {command: [check, -a]}")
        found = self.config(
            text + job("stateAllowedScopes: [y, x]", "verify: {command: [-b]}")
        ).jobs["a"]
        self.assertEqual(found.allowed_scopes, ("x", "y", "x"))
        self.assertEqual(found.verify, Verify(("check", "-a", "-b")))
        shell = "onFailure: {report: {shell: {command: [%s]}}}"
        found = self.config(defaults(shell % "tell") + job(shell % "me")).jobs["a"]
        self.assertEqual(found.on_failure.shell.command, ("tell", "me"))

    def test_kinds_replace(self) -> None:
        """Values of two kinds replace each other."""
        for first, second, expected in (
            ("{interval: 5}", "yes", Monitor(True)),
            ("{interval: 5}", "no", Monitor()),
            ("yes", "{history: 5}", Monitor(True, history=5)),
            ("{interval: 5}", "{history: 5}", Monitor(True, 5.0, 5)),
        ):
            text = defaults(f"monitorResources: {first}") + job(f"monitorResources: {second}")
            self.assertEqual(self.config(text).jobs["a"].monitor, expected)
        text = defaults("verify: {command: [a, b]}") + job("verify: {command: c}")
        self.assertEqual(self.config(text).jobs["a"].verify, Verify("c"))

    def test_zone(self) -> None:
        """An inherited zone is the job's frame."""
        found = self.config(defaults("timezone: Asia/Tokyo") + job()).jobs["a"]
        assert found.schedule is not None
        self.assertEqual(found.schedule.zone, "Asia/Tokyo")
        found = self.config(defaults("utc: no") + job("utc: yes")).jobs["a"]
        self.assertEqual((found.timezone, found.utc), ("UTC", True))


class DefaultsTests(ConfigCase):
    """What a C{defaults} section may be, and when it is judged."""

    def test_not_of_defaults(self) -> None:
        """What makes a job this job has no default."""
        for key in ("name", "command", "schedule"):
            self.assert_refused(f"defaults:\n  {key}: x\n", f"defaults.{key}: not recognised")

    def test_types_are_checked(self) -> None:
        """Types are checked though no job uses them."""
        self.assert_refused(defaults("saveLimit: many"), "c.yaml:2:14: defaults.saveLimit: must be")

    def test_unused_values_are_not(self) -> None:
        """Ranges are not, unless some job is built from them."""
        text = defaults("saveLimit: -1\ntimezone: Foo/Bar\nuser: no-such\nenv_file: none")
        self.assertEqual(self.config(text).jobs, {})
        own = ("saveLimit: 1", "timezone: UTC")
        problems = self.problems(text + job(*own, "enabled: no"))
        self.assertEqual([each.key for each in problems], ["user", "env_file"])

    def test_told_once(self) -> None:
        """What many jobs inherit is told once, where it is written, naming some of them."""
        jobs = "jobs:\n" + "".join(
            f"  - {{name: j{number}, command: x, schedule: '@daily'}}\n" for number in range(5)
        )
        self.assert_refused(
            jobs + defaults("saveLimit: -1"),
            "c.yaml:8:14: job 'j0', job 'j1', job 'j2' and 2 more: saveLimit: out of range",
        )

    def test_bad_default_hides_nothing(self) -> None:
        """A default of the wrong type is told once; jobs are judged by their other keys."""
        problems = self.problems(defaults("sla: 5") + job("saveLimit: -1", "onLate: {}"))
        self.assertEqual([each.key for each in problems], ["defaults.sla", "saveLimit"])
