"""The captured commands, run as a job would, against this service."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.threads import deferToThread

from cronstable.config.values import NamedSecret, Secret
from tests.fakes import job
from tests.jobapi.live import CHECKOUT, COMMAND, LiveCase, RecordedRequest
from tests.jobapi.support import VECTORS
from tests.jobapi.test_vectors import shape

ORDER = """
state-get-missing state-set-last-42 state-get-last state-set-doc-n-3-json state-get-doc state-keys
state-set-bad-nope-json state-set-shared-yes-global state-get-shared-global
state-get-x-scope-allowed-scope state-get-x-scope-other-job state-delete-last state-delete-last-2
cursor cursor-get-rows cursor-advance-rows-10 cursor-advance-rows-9
cursor-advance-rows-2026-07-01 cursor-advance-rows-5-force cursor-get-rows-2 cursor-advance-f-1-5
cursor-advance-ts-2026-07-01
idempotent-k1 idempotent-k1-2 idempotent-k1-release idempotent-k2-ttl-60 idempotent-k1-global
artifact-put-rep-wire-pay artifact-put-rep2 artifact-get-nope artifact-get-rep
artifact-get-rep-o-wire-got artifact-list
lock-acquire-m lock-acquire-m-2 lock-acquire-m-wait-timeout-1 lock-acquire-m-permits-2
lock-acquire-t-ttl-7 lock-acquire-p-permits-0 lock-acquire-p-permits-2000
lock-release-token lock-release-token-2
lock-run-m2-scope-global-wait-timeout-5-true lock-run-m2-sh-c-exit-6 lock-run-m3
lock-run-m4-nonexistent
secret-get-api-token secret-get-nope secret-list
""".split()
"""The order in which they build on each other."""

ARGV = {
    "state-set-doc-n-3-json": ["state", "set", "doc", '{"n": 3}', "--json"],
    "lock-run-m2-sh-c-exit-6": ["lock", "run", "m2", "--", "sh", "-c", "exit 6"],
    "lock-run-m2-scope-global-wait-timeout-5-true": [
        *("lock", "run", "m2", "--scope", "global", "--wait", "--timeout", "5", "--", "true")
    ],
    "lock-run-m4-nonexistent": ["lock", "run", "m4", "--", "/nonexistent"],
}
HEX = re.compile(rb"[0-9a-f]{32}\Z")
PLACEHOLDER = "<32 hex>"
FREE = ("Accept-Encoding", "User-Agent", "Authorization")

WIRE = job(
    "wire",
    allowed_scopes=("allowed-scope",),
    secrets=(
        NamedSecret("API_TOKEN", Secret("sekret")),
        NamedSecret("B_TOKEN", Secret("other")),
    ),
)


LIMITS = {"max_value_bytes": 4096, "max_artifact_bytes": 10000}


class Replaying(LiveCase):
    """Runs the captured commands in their order and compares what can be seen from outside."""

    program: Sequence[str] = COMMAND

    async def replay_all(self) -> None:
        (self.directory / "wire.pay").write_bytes(b"payload")
        cases = {path.stem[7:]: path for path in VECTORS.glob("v1-cli-*.json")}
        workflows = {name for name in cases if name.startswith("xcom")}
        self.assertEqual(set(ORDER), set(cases) - workflows)
        self.token = ""
        for name in ORDER:
            await self.replay(name, json.loads(cases[name].read_text("utf-8")))
        self.assertEqual((self.directory / "wire.got").read_bytes(), b"payload")

    async def replay(self, name: str, case: dict[str, Any]) -> None:
        argv = ARGV.get(name) or shlex.split(case["cli"].replace("<hold token>", "TOKEN"))[1:]
        words = [self.token if word == "TOKEN" else word for word in argv]
        done = await self.run_command(*words, program=self.program)
        said = done.stdout.strip()
        self.assertEqual(done.returncode, case["exit"], (name, done.stderr))
        self.assertEqual(bool(done.stderr), case["stderr_nonempty"], (name, done.stderr))
        if case["stdout"] == PLACEHOLDER:
            self.assertRegex(said, HEX, name)
            self.token = self.token or said.decode()
        else:
            self.assertEqual(said.decode(), case["stdout"], name)


class CapturedTests(Replaying):
    """Each command that was captured, in one run."""

    async def test_all(self) -> None:
        """Exit status, output, requests and the shape of answers are what they were."""
        await self.serve(WIRE, **LIMITS)
        await self.replay_all()

    async def replay(self, name: str, case: dict[str, Any]) -> None:
        before = len(self.recorded)
        await super().replay(name, case)
        made = self.recorded[before:]
        self.assertEqual(len(made), len(case["exchanges"]), name)
        for request, exchange in zip(made, case["exchanges"], strict=True):
            self.compare(name, request, exchange)

    def compare(self, name: str, request: RecordedRequest, exchange: dict[str, Any]) -> None:
        asked, answered = exchange["request"], exchange["response"]
        self.assertEqual(
            (request.method.decode(), request.uri.decode()), (asked["method"], asked["path"]), name
        )
        for header, value in asked["headers"].items():
            if header not in FREE:
                self.assertEqual(request.getHeader(header), value, (name, header))
        self.assertEqual(request.getHeader("accept-encoding"), "identity")
        body = request.sent
        if "json" in asked:
            sent = json.loads(body)
            for key, value in asked["json"].items():
                if value != PLACEHOLDER:
                    self.assertEqual((sent[key], type(sent[key])), (value, type(value)), name)
            self.assertEqual(list(sent), list(asked["json"]), name)
        else:
            self.assertEqual(body, asked.get("raw", "").encode(), name)
        self.assertEqual(request.code, answered["status"], name)
        if "json" in answered["body"]:
            said = json.loads(request.answered)
            self.assertEqual(shape(said), shape(answered["body"]["json"]), name)


class CommandTests(LiveCase):
    """What the captures do not show."""

    async def command(
        self, *argv: str, environ: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        done = await self.run_command(*argv, environ=environ)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    async def test_values(self) -> None:
        """Text is printed as it is, anything else as JSON; what was set is what is got."""
        await self.serve(WIRE)
        for value, flags, printed in (
            ("5", (), "5"),
            ("5", ("--json",), "5"),
            ('"text"', ("--json",), "text"),
            ('[1, "é", null]', ("--json",), '[1, "\\u00e9", null]'),
            ("null", ("--json",), "null"),
            ("é\n ", (), "é\n "),
        ):
            self.assertEqual(await self.command("state", "set", "k", value, *flags), (0, "", ""))
            self.assertEqual(await self.command("state", "get", "k"), (0, printed + "\n", ""))

    async def test_any_locale(self) -> None:
        """A value comes out in UTF-8 whatever the locale says."""
        await self.serve(WIRE)
        await self.command("state", "set", "k", "é")
        plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = await self.run_command("state", "get", "k", environ=plain)
        self.assertEqual(done.stdout, "é\n".encode())

    async def test_trouble(self) -> None:
        """Trouble is one line on stderr and status 1, and never looks like absence."""
        await self.serve(WIRE, max_value_bytes=20)
        for argv, environ, part in (
            (("state", "get", "k"), {"CRONSTABLE_STATE_TOKEN": ""}, "CRONSTABLE_STATE_TOKEN"),
            (("state", "get", "k"), {"CRONSTABLE_STATE_TOKEN": "0" * 64}, "401"),
            (("state", "get", "k"), {"CRONSTABLE_STATE_URL": "http://127.0.0.1:1"}, "refused"),
            (("state", "get", "k", "--scope", "other"), {}, "stateAllowedScopes"),
            (("state", "get", ""), {}, "key is required"),
            (("state", "get", os.fsdecode(b"\xff")), {}, "not valid UTF-8"),
            (("state", "set", "k", "x" * 20), {}, "22 bytes"),
            (("state", "set", "k", "{", "--json"), {}, "not JSON"),
            (("cursor", "advance", "c", "nan"), {}, "not portable"),
            (("cursor", "advance", "c", "1e400"), {}, "not portable"),
            (("artifact", "put", "a", "/nowhere/x"), {}, "cannot read /nowhere/x"),
            (("artifact", "put", "a", "."), {}, "cannot read ."),
            (("lock", "acquire", "l", "--ttl", "nan"), {}, "finite"),
            (("lock", "run", "l", "--", ""), {}, "cannot run ''"),
            (("lock", "run", "l", "--", "."), {}, "cannot run '.'"),
        ):
            status, out, err = await self.command(*argv, environ=environ)
            self.assertEqual((status, out), (1, ""), (argv, err))
            self.assertEqual(err.count("\n"), 1, err)
            self.assertTrue(err.startswith(f"cronstable {argv[0]}: "), err)
            self.assertIn(part, err)

    async def test_usage(self) -> None:
        """What cannot be read is status 2, with nothing asked."""
        await self.serve(WIRE)
        for argv in (
            ("cursor",),
            ("lock",),
            ("artifact",),
            ("secret",),
            ("state", "get"),
            ("state", "get", "k", "--scope", "a", "--global"),
            ("secret", "list", "--global"),
            ("lock", "release", "x", "--global"),
            ("lock", "acquire", "l", "--", "x"),
            ("lock", "acquire", "l", "--timeout", "nan"),
            ("lock", "acquire", "l", "--timeout", "inf"),
            ("lock", "acquire", "l", "--permits", "x"),
            ("lock", "run", "l", "word", "--", "true"),
            ("lock", "run", "l", "echo", "-n"),
            ("idempotent",),
            ("idempotent", "k", "--ttl", "x"),
        ):
            status, out, err = await self.command(*argv)
            self.assertEqual((status, out), (2, ""), (argv, err))
            self.assertNotEqual(err, "")
        self.assertEqual(self.recorded, [])

    async def test_payloads(self) -> None:
        """Payloads go from a file or stdin to a file or stdout, byte for byte."""
        await self.serve(WIRE)
        long = bytes(range(256)) * 20_000
        (self.directory / "long").write_bytes(long)
        done = await self.run_command("artifact", "put", "a", "long")
        self.assertEqual((done.returncode, len(done.stdout)), (0, 65))
        self.assertEqual((await self.run_command("artifact", "get", "a")).stdout, long)
        await self.run_command("artifact", "put", "a", "-", stdin=long + b"x")
        got = await self.run_command("artifact", "get", "a", "-o", "got")
        self.assertEqual((got.returncode, got.stdout), (0, b""))
        self.assertEqual((self.directory / "got").read_bytes(), long + b"x")

    async def test_file_stays(self) -> None:
        """A file is left as it is when there is nothing to put into it."""
        await self.serve(WIRE)
        kept = self.directory / "kept"
        kept.write_text("before")
        status, _, err = await self.command("artifact", "get", "nope", "-o", "kept")
        self.assertEqual((status, err), (4, "artifact not found: nope\n"))
        self.assertEqual(kept.read_text(), "before")
        await self.run_command("artifact", "put", "a", stdin=b"x")
        status, out, err = await self.command("artifact", "get", "a", "-o", "/nowhere/x")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("cannot write /nowhere/x", err)

    async def test_file_stays_until_all_is_here(self) -> None:
        """A payload that is cut short on its way changes no file."""
        await self.serve(WIRE)
        await self.run_command("artifact", "put", "a", stdin=b"x" * 20_000_000)
        (blob,) = (self.directory / "state").glob("*/blobs/*/*")
        blob.write_bytes(b"y" * 20_000_000)
        kept = self.directory / "kept"
        kept.write_text("before")
        status, _, err = await self.command("artifact", "get", "a", "-o", "kept")
        self.assertEqual((status, kept.read_text()), (1, "before"), err)

    async def test_closed_pipe(self) -> None:
        """A reader that goes is no traceback."""
        await self.serve(WIRE)
        await self.run_command("artifact", "put", "a", stdin=b"x" * 5_000_000)
        shell = f"{shlex.join([*COMMAND, 'artifact', 'get', 'a'])} | head -c 1"
        done = await self.run_command("-c", shell, program=("sh",))
        self.assertEqual((done.stdout, done.stderr), (b"x", b""))

    async def test_no_output(self) -> None:
        """Closed and full streams change no status, and what is for one never goes to another."""
        await self.serve(WIRE)
        for line, answer in (
            ("secret get API_TOKEN >&-", (0, b"", b"")),
            ("secret get nope 2>&-", (4, b"", b"")),
            ("state get nope 2>/dev/full", (4, b"", b"")),
            ("lock run m -- sh -c 'exit 6' >&- 2>&-", (6, b"", b"")),
            ("lock run m 2>/dev/full", (1, b"", b"")),
            (
                "artifact put a <&-",
                (1, b"", b"cronstable artifact: cannot read stdin: it is closed\n"),
            ),
        ):
            shell = f"{shlex.join(COMMAND)} {line}"
            done = await self.run_command("-c", shell, program=("sh",))
            self.assertEqual((done.returncode, done.stdout, done.stderr), answer, line)


class LockRunTests(LiveCase):
    """A command under a lock."""

    async def held(self) -> list[str]:
        """Return the leases that are held."""
        leases, _ = await self.store.ask(lambda store: store.leases.all())
        now = self.store._clock.now()
        return [lease.name for lease in leases if lease.held(now)]

    async def test_status(self) -> None:
        """The command's status is that of C{lock run}, 256-N after signal N."""
        await self.serve(WIRE)
        for script, status in (
            ("exit 0", 0),
            ("exit 6", 6),
            ("exit 300", 44),
            ("kill -9 $$", 247),
            ("kill -TERM $$", 241),
        ):
            done = await self.run_command("lock", "run", "m", "--", "sh", "-c", script)
            self.assertEqual((done.returncode, done.stderr), (status, b""), script)
            self.assertEqual(await self.held(), [])

    async def test_without_dashes(self) -> None:
        """Words without dashes are taken for the command."""
        await self.serve(WIRE)
        done = await self.run_command("lock", "run", "--global", "m", "echo", "yes")
        self.assertEqual((done.returncode, done.stdout), (0, b"yes\n"))

    async def test_for_ever(self) -> None:
        """Any number of seconds is good for waiting."""
        await self.serve(WIRE)
        done = await self.run_command(
            "lock", "run", "m", "--wait", "--timeout", "1e300", "--", "true"
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    async def test_excludes(self) -> None:
        """While one runs, another is refused, or waits for its turn; both outputs are whole."""
        await self.serve(WIRE)
        self.environment, other = self.let_in(job("other"), "r2"), self.environment
        script = "echo first; touch started; while [ ! -e go ]; do sleep 0.02; done; echo done"
        first = self.run_command("lock", "run", "m", "--global", "--", "sh", "-c", script)
        await deferToThread(self.wait_for, "started")
        self.environment = other
        refused = await self.run_command("lock", "run", "m", "--global", "--", "true")
        self.assertEqual((refused.returncode, refused.stderr), (3, b"lock not acquired: m\n"))
        second = self.run_command(
            *("lock", "run", "m", "--global", "--wait", "--timeout", "30", "--", "echo", "second")
        )
        (self.directory / "go").touch()
        self.assertEqual((await first).stdout, b"first\ndone\n")
        self.assertEqual((await second).stdout, b"second\n")

    def wait_for(self, name: str) -> None:
        """Wait until a file is there."""
        subprocess.run(
            ["sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.02; done', str(self.directory / name)],
            timeout=30,
            check=True,
        )

    async def test_signals(self) -> None:
        """A signal goes to the command; the lock is freed when that has ended, and not before."""
        await self.serve(WIRE)
        script = "trap 'echo term; exit 3' TERM; touch started; while :; do sleep 0.02; done"
        process = subprocess.Popen(
            [*COMMAND, "lock", "run", "m", "--", "sh", "-c", script],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        await deferToThread(self.wait_for, "started")
        process.send_signal(signal.SIGINT)
        self.assertEqual(await self.held(), ["lock/wire/m#0"])
        process.send_signal(signal.SIGTERM)
        out, err = await deferToThread(process.communicate)
        self.assertEqual((process.returncode, out, err), (3, b"term\n", b""))
        self.assertEqual(await self.held(), [])

    async def test_command_of_a_shell(self) -> None:
        """The command has the signals at their defaults, so that pipes end as they should."""
        await self.serve(WIRE)
        script = "yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}"
        done = await self.run_command("lock", "run", "m", "--", "bash", "-c", script)
        self.assertEqual(done.stdout, b"141\n")
