"""How text is typed, and what is said of text that has the wrong type."""

from __future__ import annotations

import math

from cronstable.config.values import PoolMembership
from tests.config.helpers import ConfigCase, job, section


class TypingTests(ConfigCase):
    """What each type accepts."""

    def test_booleans(self) -> None:
        """Booleans are spelled in ten words, in any case, quoted or not."""
        for word in ("yes", "true", "on", "1", "y", "Yes", "TRUE", '"oN"', "'1'"):
            self.assertIs(self.job(f"captureStdout: {word}").capture_stdout, True, word)
        for word in ("no", "false", "off", "0", "n", "No", "FALSE", '"oFf"', "'0'"):
            self.assertIs(self.job(f"captureStderr: {word}").capture_stderr, False, word)

    def test_no_booleans(self) -> None:
        """Anything else is refused as a boolean."""
        for word in ("maybe", "2", "t", '" yes"', '"true "', ""):
            self.assert_refused(
                job(f"captureStdout: {word}"), "job 'a': captureStdout: must be a boolean"
            )

    def test_integers(self) -> None:
        """Whole numbers have a sign, digits and separators."""
        for word, value in (("7", 7), ("+7", 7), ("007", 7), ("1_000", 1000), ("'7'", 7)):
            self.assertEqual(self.job(f"saveLimit: {word}").save_limit, value)
        pooled = section("state", "path: x") + section("pools", "p: {slots: 1}")
        found = self.config(job("pool: p", "queuePriority: -3") + pooled).jobs["a"].pool
        self.assertEqual(found, PoolMembership("p", priority=-3))

    def test_no_integers(self) -> None:
        """Other numbers are no whole numbers."""
        for word in ("1.0", "0x10", "1e3", "five", '" 1"', "", "_", "+", "\uff11"):
            self.assert_refused(job(f"saveLimit: {word}"), "saveLimit: must be a whole number")

    def test_floats(self) -> None:
        """Numbers may have a fraction, an exponent, separators, or be infinite."""
        for word, value in (
            ("3", 3.0),
            ("+3", 3.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("0.5e3", 500.0),
            ("5E-3", 0.005),
            ("1_0.5", 10.5),
            ("inf", math.inf),
            (".INF", math.inf),
        ):
            self.assertEqual(self.job(f"killTimeout: {word}").kill_timeout, value, word)

    def test_no_floats(self) -> None:
        """Other text is no number; NaN is one that fits no range."""
        for word in ("Infinity", "0x1", "1e", "", "1 2"):
            self.assert_refused(job(f"killTimeout: {word}"), "killTimeout: must be a number")
        for word in ("nan", ".NaN"):
            self.assert_refused(job(f"killTimeout: {word}"), "killTimeout: out of range, got nan")

    def test_enumerations(self) -> None:
        """Words of an enumeration count in exact case; the message lists them all."""
        self.assert_refused(
            job("concurrencyPolicy: allow"),
            "c.yaml:5:24: job 'a': concurrencyPolicy: unknown value, got 'allow'; "
            "allowed: Allow, Forbid, Replace (did you mean 'Allow'?)",
        )

    def test_nul(self) -> None:
        """Text with a NUL is refused wherever it stands; it could be neither opened nor passed."""
        for line, key in (
            ('workingDirectory: "a\\0b"', "workingDirectory"),
            ('verify: {command: ["a", "\\0"]}', "verify.command"),
            ('user: "a\\0"', "user"),
            ('environment: [{key: "A\\0", value: x}]', "environment[0].key"),
            ('environment: [{key: A, value: "x\\0"}]', "environment[0].value"),
        ):
            self.assert_refused(job(line), "c.yaml:5:", f"job 'a': {key}", ": holds a NUL")
        for text in (
            'state:\n  path: "a\\0"\n',
            'web:\n  listen: ["unix:///a\\0"]\n',
            'web:\n  listen: []\n  authToken: {fromFile: "a\\0"}\n',
        ):
            self.assert_refused(text, ": holds a NUL")

    def test_very_long_numbers(self) -> None:
        """A number of thousands of digits is told with its place, like any other bad value."""
        digits = "9" * 5000
        self.assert_refused(job(f"saveLimit: {digits}"), "saveLimit: must be a whole number")
        self.assert_refused(job(f"user: {digits}"), "c.yaml:5:11: job 'a': user: ")

    def test_wrong_kinds(self) -> None:
        """A list, a mapping or text in the place of another is told as what it is."""
        for line, said in (
            ("saveLimit: [1]", "saveLimit: must be a whole number, got a list"),
            ("shell: {a: b}", "shell: must be text, got a mapping"),
            ("environment: A=b", "environment: must be a list, got text"),
            ("environment:", "environment: must be a list, got nothing"),
            ("failsWhen:", "failsWhen: must be a mapping, got nothing"),
            ("failsWhen: [x]", "failsWhen: must be a mapping, got a list"),
            ("monitorResources: [x]", "monitorResources: must be a boolean"),
            ("priority: [x]", "priority: must be a word, got a list"),
        ):
            self.assert_refused(job(line), said)

    def test_nothing(self) -> None:
        """Only keys that say so take a blank value; in plain text it is empty text."""
        found = self.job("workingDirectory:", "pool:", "startingDeadlineSeconds:", "verify:")
        self.assertIs(found.working_directory, None)
        self.assertIs(found.pool, None)
        self.assertIs(found.starting_deadline, None)
        self.assertIs(found.verify, None)
        self.assertEqual(self.job("shell:", "streamPrefix:").shell, "")
        for name in ("defaults", "jobs", "web", "state", "cluster", "notify", "logging", "pools"):
            self.assert_refused(f"{name}:\n", f"{name}: must be a", "got nothing")

    def test_unknown_keys(self) -> None:
        """Every mapping is closed; the nearest key is suggested."""
        self.assert_refused(
            job("captureStdOut: yes"),
            "c.yaml:5:5: job 'a': captureStdOut: not recognised (did you mean 'captureStdout'?)",
        )
        self.assert_refused(
            job("failsWhen:", "  producesStdout: no", "  zzz: 1"), "job 'a': failsWhen.zzz: not"
        )
        self.assert_refused(section("state", "path: x", "jobApi: {zzz: 1}"), "state.jobApi.zzz")

    def test_missing_keys(self) -> None:
        """A block lacks what it must have even if a default has it."""
        content = "defaults:\n  failsWhen:\n    producesStdout: yes\n" + job(
            "failsWhen:", "  producesStderr: no"
        )
        self.assert_refused(content, "job 'a': failsWhen.producesStdout: required, but missing")
        problems = self.problems(job("onFailure:", "  retry: {maximumRetries: 3}"))
        self.assertEqual(
            {each.key for each in problems},
            {
                "onFailure.retry.initialDelay",
                "onFailure.retry.maximumDelay",
                "onFailure.retry.backoffMultiplier",
            },
        )
        for lines, key in (
            ("onFailure: {report: {mail: {from: x}}}", "onFailure.report.mail.to"),
            ("onFailure: {report: {shell: {timeout: 3}}}", "onFailure.report.shell.command"),
            ("statsd: {prefix: x, host: y}", "statsd.port"),
            ("verify: {timeout: 3}", "verify.command"),
            ("environment: [{key: x}]", "environment[0].value"),
            ("secrets: [{value: x}]", "secrets[0].name"),
        ):
            self.assertEqual(self.problem(job(lines)).key, key)

    def test_missing_top_keys(self) -> None:
        """A job without name, command or schedule is named as well as can be."""
        self.assert_refused("jobs: [{name: x, command: y}]", "job 'x': schedule: required")
        self.assert_refused("jobs: [{name: x, schedule: '@daily'}]", "job 'x': command: required")
        self.assert_refused(
            "jobs: [{command: x, schedule: '@daily'}]", "jobs[0]: name: required, but missing"
        )
        self.assert_refused(
            "jobs: [{name: '', command: x, schedule: '@daily'}]", "name: must not be blank"
        )
        self.assert_refused("jobs: [x]", "jobs[0]: must be a mapping, got text")

    def test_all_at_once(self) -> None:
        """All that is wrong in a file is told, in the file's order."""
        content = (
            job("bogus: 1", "saveLimit: -1", "timezone: Foo/Bar")
            + '  - name: b\n    schedule: "99 * * * *"\n'
            + section("web", "listen: x")
            + section("state", "path: ' '", "slotTtlSeconds: 4")
        )
        self.assertEqual(
            [(each.line, each.where, each.key) for each in self.problems(content)],
            [
                (5, "job 'a'", "bogus"),
                (6, "job 'a'", "saveLimit"),
                (7, "job 'a'", "timezone"),
                (8, "job 'b'", "command"),
                (9, "job 'b'", "schedule"),
                (11, "", "web.listen"),
                (13, "", "state.path"),
                (14, "", "state.slotTtlSeconds"),
            ],
        )

    def test_secrets_are_never_shown(self) -> None:
        """No message quotes what may be a secret."""
        for content in (
            job("onFailure: {report: {webhook: {url: http://hunter2}}}"),
            job("onFailure: {report: {sentry: {dsn: {value: [hunter2]}}}}"),
            job("environment: [{key: A, value: [hunter2]}]"),
            job('environment: [{key: "A=hunter2", value: x}]'),
            job('environment: [{key: A, value: "hunter2\\0"}]'),
            section("push", "relay: {url: hunter2}", "devicesFile: x"),
            section("web", "listen: ['https://u:hunter2@x:1']"),
            section("web", "listen: []", "headers: {X: [hunter2]}"),
            section("cluster", "backend: etcd", "etcd: {endpoints: ['http://u:hunter2@x']}"),
            section("state", "path: x", "jobApi: {listen: 'http://u:hunter2@10.0.0.1'}"),
        ):
            for problem in self.problems(content):
                self.assertNotIn("hunter2", str(problem))
