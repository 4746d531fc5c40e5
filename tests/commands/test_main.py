"""Tests of what the command does with its options, and in which order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cronstable
from cronstable.commands import main as command
from tests.commands.support import CommandTestCase

VALID = """\
jobs:
  - name: a
    schedule: "@yearly"
    command: "true"
"""
INVALID = """\
jobs:
  - name: a
    schedule: "@yearly"
    command: "true"
    comand: "true"
"""


class BuildFactsTests(CommandTestCase):
    """Flags that ask about the program and touch no configuration."""

    def test_version(self) -> None:
        """--version prints the version alone on one line."""
        outcome = self.cronstable("--version")
        self.assertEqual(outcome.out, cronstable.__version__ + "\n")
        self.assertEqual((outcome.status, outcome.err), (0, ""))

    def test_facts_come_before_the_configuration(self) -> None:
        """With a build-fact flag the configuration is not looked at, nor is a sub-command run."""
        for argv in (
            ["-v", "--version"],
            ["--job-set-id", "--version", "-c", "/nonexistent"],
            ["--version", "init", "made"],
            ["--version", "--third-party-licenses"],
        ):
            self.assertEqual(self.cronstable(*argv).out, cronstable.__version__ + "\n", argv)
        self.assertFalse(os.path.exists("made"))

    def test_licenses(self) -> None:
        """--third-party-licenses names what is installed with it."""
        outcome = self.cronstable("--third-party-licenses")
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        for name in ("Twisted", "attrs", "PyYAML", "klein"):
            self.assertRegex(outcome.out, rf"(?m)^{name} \d")
        self.assertIn("Permission is hereby granted", outcome.out)

    def test_suites(self) -> None:
        """--sealable-suites prints one suite a line: none here."""
        outcome = self.cronstable("--sealable-suites")
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "", ""))


class ValidateTests(CommandTestCase):
    """-v and --job-set-id."""

    def test_valid(self) -> None:
        """A valid configuration is said to be so on stderr, at INFO."""
        outcome = self.cronstable("-v", "-c", self.write("ok.yaml", VALID))
        self.assertEqual((outcome.status, outcome.out), (0, ""))
        self.assertEqual(outcome.err, "INFO:cronstable:Configuration is valid.\n")

    def test_quiet(self) -> None:
        """Under -l ERROR a valid configuration prints nothing."""
        outcome = self.cronstable("-l", "ERROR", "-v", "-c", self.write("ok.yaml", VALID))
        self.assertEqual((outcome.status, outcome.out, outcome.err), (0, "", ""))

    def test_empty(self) -> None:
        """An empty file and an empty directory are valid."""
        os.mkdir("nothing")
        for path in ("nothing", self.write("empty.yaml", "")):
            self.assertEqual(self.cronstable("-v", "-c", path).status, 0, path)

    def test_invalid(self) -> None:
        """A configuration error names file, line, job and key; exit status 1, empty stdout."""
        path = self.write("bad.yaml", INVALID)
        for flag in ("-v", "--job-set-id"):
            outcome = self.cronstable(flag, "-c", path)
            self.assertEqual((outcome.status, outcome.out), (1, ""))
            self.assertTrue(
                outcome.err.startswith("ERROR:cronstable:Configuration error: "), outcome.err
            )
            for fact in ("bad.yaml", "5", "'a'", "comand"):
                self.assertIn(fact, outcome.err)

    def test_missing(self) -> None:
        """A path that is not there, and is not the default, is an error with the OS's reason."""
        outcome = self.cronstable("-v", "-c", "nowhere")
        self.assertEqual((outcome.status, outcome.out), (1, ""))
        self.assertTrue(outcome.err.startswith("ERROR:cronstable:Configuration error: "))
        self.assertIn("No such file or directory", outcome.err)

    def test_blank_path(self) -> None:
        """An empty -c is a path that is not there, not the default."""
        outcome = self.cronstable("-v", "-c", "")
        self.assertEqual(outcome.status, 1)
        self.assertIn("No such file or directory", outcome.err)

    def test_job_set_id(self) -> None:
        """--job-set-id prints the fingerprint and nothing else, with -v too."""
        path = self.write("ok.yaml", VALID)
        for argv in (["--job-set-id"], ["--job-set-id", "-v"]):
            outcome = self.cronstable(*argv, "-c", path)
            self.assertEqual((outcome.status, outcome.err), (0, ""))
            self.assertRegex(outcome.out, r"\Av1:[0-9a-f]{64}\n\Z")

    def test_writes_nothing(self) -> None:
        """A check starts no store: the configured path is not created."""
        text = VALID + "state:\n  path: made\nlogging:\n  version: 1\n"
        outcome = self.cronstable("-v", "-c", self.write("ok.yaml", text))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertEqual(os.listdir("."), ["ok.yaml"])


class DefaultPathTests(CommandTestCase):
    """What happens where no configuration has been made yet."""

    def setUp(self) -> None:
        super().setUp()
        self.default = os.path.abspath("etc")
        self.default_config_is(self.default)
        self.advice = (
            f"cronstable error: configuration file not found at the default location"
            f" ({self.default})."
        )

    def assert_advised(self, text: str) -> None:
        """Fail unless C{text} is the advice and then the help."""
        first, _, rest = text.partition("\n")
        self.assertTrue(first.startswith(self.advice), first)
        self.assertIn("cronstable init", first)
        self.assertIn("-c", first)
        self.assertIn("usage: cronstable", rest)
        self.assertIn("--job-set-id", rest)

    def test_absent(self) -> None:
        """Any invocation that would read the absent default is advised on stderr, status 1."""
        for argv in (
            ["-v"],
            ["--job-set-id"],
            ["-c", self.default],
            ["-l", "INFO"],
        ):
            outcome = self.cronstable(*argv)
            self.assertEqual((outcome.status, outcome.out), (1, ""), argv)
            self.assert_advised(outcome.err)

    def test_bare(self) -> None:
        """Called with nothing at all the same goes to stdout and succeeds."""
        outcome = self.cronstable()
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        self.assert_advised(outcome.out)

    def test_present(self) -> None:
        """The default is used where it is there."""
        os.mkdir(self.default)
        self.assertEqual(self.cronstable("-v").status, 0)

    def test_cannot_be_looked_at(self) -> None:
        """A default that cannot be looked at is an error with its reason, not advice."""
        loop = os.path.abspath("loop")
        os.symlink("loop", loop)
        self.default_config_is(loop)
        outcome = self.cronstable("-v")
        self.assertEqual(outcome.status, 1)
        self.assertIn("Configuration error: ", outcome.err)


class TroubleTests(CommandTestCase):
    """Nothing that a user does ends in a traceback."""

    def run_process(self, *argv: str, **options: object) -> subprocess.CompletedProcess[bytes]:
        """Run the command as a process of its own."""
        root = os.path.dirname(os.path.dirname(os.path.abspath(cronstable.__file__)))
        return subprocess.run(
            [sys.executable, "-m", "cronstable", *argv],
            env={**os.environ, "PYTHONPATH": root, "PYTHONUNBUFFERED": ""},
            timeout=60,
            check=False,
            **options,  # type: ignore[call-overload]
        )

    def test_interrupted(self) -> None:
        """Ctrl-C during a check ends it quietly with status 130."""

        def interrupt(*ignored: object) -> int:
            raise KeyboardInterrupt

        self.patch(command, "_run", interrupt)
        outcome = self.cronstable("-v")
        self.assertEqual((outcome.status, outcome.out, outcome.err), (130, "", ""))

    def test_reader_gone(self) -> None:
        """Output into a pipe that nobody reads any more ends with status 1 and no traceback."""
        reading, writing = os.pipe()
        os.close(reading)
        self.addCleanup(os.close, writing)
        for argument in ("--help", "--version", "--third-party-licenses"):
            done = self.run_process(argument, stdout=writing, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (1, b""), argument)

    def test_no_room_for_output(self) -> None:
        """Output that does not fit on its disk is one line and status 1, whatever was asked."""
        config = Path(self.mktemp())
        config.write_text(f"state:\n  path: {config.resolve()}.d\n")
        with open("/dev/full", "wb") as full:
            for argv in (("--version",), ("state", "check", "-c", str(config))):
                done = self.run_process("-l", "ERROR", *argv, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 1, argv)
                self.assertIn(b"cannot write to stdout: [Errno 28]", done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_odd_bytes(self) -> None:
        """A path that is no text is shown escaped."""
        done = self.run_process(
            "-v", "-c", os.fsdecode(b"caf\xe9"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"Configuration error", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr)
        done = self.run_process(
            "init", os.fsdecode(b"caf\xe9"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(os.path.exists(b"caf\xe9/cronstable.yaml"))


class LightnessTests(CommandTestCase):
    """What a check must not import."""

    def test_imports(self) -> None:
        """--version, licences, -v and --job-set-id load neither Twisted nor the daemon."""
        path = self.write("ok.yaml", VALID)
        root = os.path.dirname(os.path.dirname(os.path.abspath(cronstable.__file__)))
        script = (
            "import sys; from cronstable.commands.main import main; status = main(sys.argv[1:]);"
            "loaded = {name.split('.')[0] for name in sys.modules} & {'twisted', 'zope', 'treq',"
            " 'klein', 'OpenSSL', 'jinja2', 'psutil', 'sentry_sdk'};"
            "assert not loaded and 'cronstable.daemon' not in sys.modules, loaded;"
            "sys.exit(status)"
        )
        for argv in (
            ["--version"],
            ["--third-party-licenses"],
            ["-v", "-c", path],
            ["--job-set-id", "-c", path],
            ["init", "made"],
        ):
            done = subprocess.run(
                [sys.executable, "-c", script, *argv],
                env={**os.environ, "PYTHONPATH": root},
                capture_output=True,
                timeout=60,
                check=False,
            )
            self.assertEqual(done.returncode, 0, (argv, done.stderr))
