"""Digests and job-set IDs, to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.fingerprint import (
    SCHEME_VERSION,
    canonical_text,
    fold,
    job_digest,
    job_set_id,
)
from cronstable.config.values import (
    EventlogReport,
    FailsWhen,
    JobConfig,
    MailReport,
    NamedSecret,
    PoolMembership,
    PushReport,
    Report,
    ResourceLimits,
    RetryPolicy,
    Secret,
    SentryReport,
    ShellReport,
    Sla,
    Statsd,
    Verify,
    WebhookReport,
)

VECTORS = Path(__file__).parent.parent / "vectors" / "fingerprint"
INDEX = json.loads((VECTORS / "index.json").read_text())
PREIMAGE = (VECTORS / INDEX["default_job_preimage"]["file"]).read_bytes()
DEFAULT = json.loads(PREIMAGE)


def job(**changes: Any) -> JobConfig:
    """Return the job of the captured text, with changes."""
    return attrs.evolve(JobConfig("hello", "echo hi", "* * * * *", None), **changes)


def canonical(**changes: Any) -> Any:
    """Return the canonical object of a changed job."""
    return json.loads(canonical_text(job(**changes)))


class CanonicalTextTests(SynchronousTestCase):
    """Tests for L{canonical_text}."""

    def differs_in(self, changes: dict[str, Any], expected: dict[str, Any]) -> None:
        """Check which top-level members a change adds or replaces, and nothing else."""
        found = canonical(**changes)
        different = {key: found[key] for key in found if found[key] != DEFAULT.get(key)}
        self.assertEqual(different, expected)
        self.assertEqual(set(DEFAULT) - set(found), set())

    def test_default_job(self) -> None:
        """A job with every default has exactly the captured bytes."""
        self.assertEqual(canonical_text(job()).encode("ascii"), PREIMAGE)

    def test_order(self) -> None:
        """Keys are in code point order, the added ones among them, without blanks."""
        everything = job(
            concurrency_scope="cluster",
            priority="idle",
            verify=Verify("true"),
            pool=PoolMembership("db"),
            limits=ResourceLimits(processes=3),
            output_grace=5.0,
            umask=0o27,
            statsd=Statsd("p", "h", 1),
            retry=RetryPolicy(3, jitter=0.5),
        )
        text = canonical_text(everything)
        again = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        self.assertEqual(text, again)

    def test_command(self) -> None:
        """A string is a shell command and a list is an argv."""
        self.differs_in({"command": "a b"}, {"command": {"shell_command": "a b"}})
        self.differs_in({"command": ("a", "b c")}, {"command": {"argv": ["a", "b c"]}})

    def test_numbers(self) -> None:
        """A whole number has no fraction, however large; others have their shortest form."""
        for value, text in (
            (30.0, "30"),
            (0.0, "0"),
            (-0.0, "0"),
            (1e22, "10000000000000000000000"),
            (0.25, "0.25"),
            (1e-07, "1e-07"),
            (float("inf"), "Infinity"),
        ):
            self.assertIn(f'"killTimeout":{text},', canonical_text(job(kill_timeout=value)))

    def test_booleans_stay(self) -> None:
        """A truth value is never taken for a number."""
        text = canonical_text(job(enabled=False, capture_stdout=True))
        self.assertIn('"enabled":false,', text)
        self.assertIn('"captureStdout":true,', text)

    def test_strings(self) -> None:
        """Everything outside printable ASCII is escaped with lower-case digits."""
        self.assertIn(
            r'"name":"\"\\/\b\f\n\r\t\u0001\u007f\u00e9\ud83d\ude00",',
            canonical_text(job(name='"\\/\b\f\n\r\t\x01\x7f\u00e9\U0001f600')),
        )

    def test_environment(self) -> None:
        """Only the names of variables count, each once, in code point order."""
        names = (("\uffff", "1"), ("B", "2"), ("\U0001f600", "3"), ("B", "4"), ("a", ""))
        self.differs_in({"environment": names}, {"environment": ["B", "a", "\uffff", "\U0001f600"]})

    def test_timezone(self) -> None:
        """A zone is its name as written; without one it is UTC, or null for the host's clock."""
        self.differs_in({"timezone": "Etc/UTC", "utc": False}, {"timezone": "Etc/UTC"})
        self.differs_in({"timezone": None, "utc": False}, {"timezone": None})
        self.differs_in({"timezone": None, "utc": True}, {})

    def test_account(self) -> None:
        """User and group are as configured, not as resolved."""
        self.differs_in({"user": 1000, "group": "web"}, {"user": 1000, "group": "web"})
        self.differs_in({"uid": 5, "gid": 6, "login": "x"}, {})

    def test_plain_fields(self) -> None:
        """The remaining fields are told under their configuration names."""
        self.differs_in(
            {
                "capture_stderr": False,
                "cluster_policy": "EveryNode",
                "concurrency_policy": "Forbid",
                "execution_timeout": 90.0,
                "fails_when": FailsWhen(always=True),
                "max_line_length": 10,
                "only_if_last_succeeded": True,
                "save_limit": 0,
                "schedule_text": "@daily",
                "shell": "/bin/bash",
                "statsd": Statsd("p", "h", 8125),
                "stream_prefix": "",
            },
            {
                "captureStderr": False,
                "clusterPolicy": "EveryNode",
                "concurrencyPolicy": "Forbid",
                "executionTimeout": 90,
                "failsWhen": {
                    "producesStdout": False,
                    "producesStderr": True,
                    "nonzeroReturn": True,
                    "always": True,
                },
                "maxLineLength": 10,
                "onlyIfLastSucceeded": True,
                "saveLimit": 0,
                "schedule": "@daily",
                "shell": "/bin/bash",
                "statsd": {"prefix": "p", "host": "h", "port": 8125},
                "streamPrefix": "",
            },
        )

    def test_added_fields(self) -> None:
        """Fields that are absent at their default are whole when they say something."""
        self.differs_in(
            {
                "concurrency_scope": "cluster",
                "priority": "high",
                "verify": Verify(("test", "-f", "x")),
                "pool": PoolMembership("db", 2, -3, 90.5),
                "limits": ResourceLimits(cpu=2.0, required=True),
            },
            {
                "concurrencyScope": "cluster",
                "priority": "high",
                "verify": {"command": ["test", "-f", "x"], "timeout": 60},
                "pool": {"name": "db", "slots": 2, "priority": -3, "timeout": 90.5},
                "resourceLimits": {"cpu": 2, "memory": None, "processes": None, "required": True},
            },
        )
        self.differs_in({"limits": ResourceLimits(required=True)}, {})

    def test_own_fields(self) -> None:
        """Keys that the shared scheme does not know are absent until they are set."""
        self.differs_in(
            {"output_grace": 5.0, "umask": 0o22}, {"outputGraceSeconds": 5, "umask": 18}
        )
        self.assertNotIn("jitter", canonical()["onFailure"]["retry"])
        found = canonical(retry=RetryPolicy(jitter=0.25))["onFailure"]["retry"]
        self.assertEqual(found.pop("jitter"), 0.25)
        self.assertEqual(found, DEFAULT["onFailure"]["retry"])

    def test_outside_identity(self) -> None:
        """What decides when a missed run is made up, or what is kept and told, does not count."""
        self.differs_in(
            {
                "on_missed": "run-all",
                "starting_deadline": 5,
                "catchup_jitter": 5,
                "catchup_limit": 5,
                "archive_output": True,
                "redact_archived_secrets": False,
                "sla": Sla(1, 2, 3),
                "on_late": Report(),
                "env_file": "x",
                "working_directory": "/srv",
                "secrets": (NamedSecret("a", Secret("b")),),
                "allowed_scopes": ("x",),
            },
            {},
        )


class ReportTests(SynchronousTestCase):
    """Tests for the reporters of a hook."""

    def block(self, name: str, **reporters: Any) -> Any:
        """Return one reporter's block of a changed hook."""
        report = Report(**reporters)
        return canonical(on_success=report)["onSuccess"]["report"].get(name)

    def test_hooks(self) -> None:
        """Each hook has its own reporters; only C{onFailure} has a retry."""
        other = Report(mail=MailReport("a", "b"))
        for field, key in (
            ("on_failure", "onFailure"),
            ("on_permanent_failure", "onPermanentFailure"),
            ("on_success", "onSuccess"),
        ):
            found = canonical(**{field: other})
            self.assertEqual(found[key]["report"]["mail"]["to"], "b")
            self.assertEqual(found[key].keys(), DEFAULT[key].keys())
            del found[key]
            self.assertEqual(found, {k: v for k, v in DEFAULT.items() if k != key})

    def test_redaction(self) -> None:
        """A secret's value is only known to be set, even if empty; where it is read is told."""
        mail = MailReport(password=Secret("hunter2"))
        self.assertEqual(
            self.block("mail", mail=mail)["password"],
            {"value": "<redacted>", "fromFile": None, "fromEnvVar": None},
        )
        sentry = SentryReport(dsn=Secret(""))
        self.assertEqual(self.block("sentry", sentry=sentry)["dsn"]["value"], "<redacted>")
        webhook = WebhookReport(url=Secret(None, "/f", "V"), headers=(("X-Key", "s"), ("A", "")))
        block = self.block("webhook", webhook=webhook)
        self.assertEqual(block["url"], {"value": None, "fromFile": "/f", "fromEnvVar": "V"})
        self.assertEqual(block["headers"], {"X-Key": "<redacted>", "A": "<redacted>"})

    def test_sentry(self) -> None:
        """C{level} and C{extra} exist only when written; extras are text."""
        self.assertNotIn("level", self.block("sentry"))
        block = self.block("sentry", sentry=SentryReport(level="info", extra=(("n", "5"),)))
        self.assertEqual((block["level"], block["extra"]), ("info", {"n": "5"}))

    def test_shell(self) -> None:
        """The time limit is left out at its default."""
        shell = ShellReport("/bin/sh", ("a", "b"), 60.0)
        self.assertEqual(
            self.block("shell", shell=shell), {"shell": "/bin/sh", "command": ["a", "b"]}
        )
        self.assertEqual(self.block("shell", shell=ShellReport(timeout=5.0))["timeout"], 5)

    def test_whole_blocks(self) -> None:
        """C{push} and C{eventlog} are left out at their defaults, else whole."""
        self.assertIsNone(self.block("push"))
        self.assertIsNone(self.block("eventlog"))
        self.assertEqual(
            self.block("push", push=PushReport(True)),
            {"enabled": True, "priority": "time-sensitive", "includeLogTail": True},
        )
        self.assertEqual(
            self.block("eventlog", eventlog=EventlogReport(source="x")),
            {"enabled": False, "source": "x", "includeOutput": False},
        )


class FoldTests(SynchronousTestCase):
    """Tests for the ID of a set."""

    def test_captured(self) -> None:
        """The captured lists of digests give the captured IDs."""
        for case in INDEX["fold"]:
            self.assertEqual(fold(case["digests"]), case["id"])

    def test_order(self) -> None:
        """The order of the jobs does not count, and disabled ones do."""
        a, b = job(name="a"), job(name="b", enabled=False)
        self.assertEqual(job_set_id([a, b]), job_set_id([b, a]))
        self.assertNotEqual(job_set_id([a, b]), job_set_id([a]))
        self.assertEqual(job_set_id([a, b]), fold([job_digest(a), job_digest(b)]))

    def test_scheme(self) -> None:
        """An ID begins with the scheme's name."""
        self.assertTrue(job_set_id([]).startswith(SCHEME_VERSION + ":"))
