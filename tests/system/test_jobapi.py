"""What a running job may ask of its daemon, in the real daemon, with real commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.certs import Authority
from tests.system.harness import CHECKOUT, Daemon

STATE = """
state:
  path: @WORK@/state
web:
  listen: [http://127.0.0.1:@PORT@]
jobs:
"""
SCRIPT = f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -m cronstable "$@"\n'


def a_job(name: str, command: str, *more: str, schedule: str = "0 0 1 1 *") -> str:
    """Return the text of a job that is started by hand."""
    lines = [f"  - name: {name}", f'    schedule: "{schedule}"', "    captureStdout: true"]
    lines += [f"    {line}" for line in more]
    lines += ["    command: |", *(f"      {line}" for line in command.strip().splitlines())]
    return "\n".join(lines) + "\n"


class JobApiCase(TestCase):
    """A daemon whose jobs find C{cronstable} on their PATH."""

    def start(self, *jobs: str, env: Mapping[str, str] | None = None, head: str = STATE) -> None:
        directory = Path(self.mktemp()).resolve()
        (directory / "bin").mkdir(parents=True)
        program = directory / "bin" / "cronstable"
        program.write_text(SCRIPT, encoding="utf-8")
        program.chmod(0o755)
        path = f"{directory / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        self.daemon = Daemon(
            self, head + "".join(jobs), directory=directory, env={"PATH": path, **(env or {})}
        )

    async def ready(self) -> None:
        await self.daemon.wait_for_log(r"cronstable\.jobapi:state job API listening on http://")
        await self.daemon.wait_for_log("filesystem backend ready")
        await self.daemon.wait_for_log("web: started listening")

    async def begin(self, job: str) -> None:
        """Start a job."""
        answer = await self.daemon.request("POST", f"/jobs/{job}/start")
        self.assertEqual(answer.status, 200, answer.body)

    async def run_job(self, job: str) -> list[str]:
        """Run a job to its end, and return what it wrote to stdout this time."""
        mark = f"[{job} stdout] "
        before = len(self.output(mark))
        runs = len(self.daemon.ends(job))
        await self.begin(job)
        await self.daemon.wait_for_end_of(job, 30, count=runs + 1)
        return self.output(mark)[before:]

    def output(self, mark: str) -> list[str]:
        return [line[len(mark) :] for line in self.daemon.stdout if line.startswith(mark)]


class CommandsTests(JobApiCase):
    """The commands as an operator writes them."""

    async def test_keys(self) -> None:
        """A job keeps values from one run to the next."""
        self.start(
            a_job(
                "keys",
                """
cronstable state get last-cursor || echo "absent $?"
cronstable state set last-cursor 12345
value=$(cronstable state get last-cursor)
echo "value $value"
cronstable state set config '{"n": 3}' --json
cronstable state keys
cronstable state delete config
                """,
            )
        )
        await self.ready()
        self.assertEqual(
            await self.run_job("keys"), ["absent 4", "value 12345", "config", "last-cursor"]
        )
        self.assertEqual((await self.run_job("keys"))[0], "12345")

    async def test_export(self) -> None:
        """A cursor lets each run go on where the last one ended."""
        self.start(
            a_job(
                "export",
                """
since=$(cronstable cursor get watermark 2>/dev/null || echo 0)
echo "exporting from $since"
cronstable cursor advance watermark "$((since + 10))"
cronstable cursor advance watermark 3
                """,
            )
        )
        await self.ready()
        self.assertEqual(await self.run_job("export"), ["exporting from 0", "10", "10"])
        self.assertEqual(await self.run_job("export"), ["exporting from 10", "20", "20"])

    async def test_charge(self) -> None:
        """A side effect that is guarded by a key happens once, whoever runs it."""
        charge = """
if cronstable idempotent "charge-2026-01-01" --global; then
  echo charged
else
  echo "left alone: $?"
fi
        """
        self.start(a_job("charge", charge), a_job("again", charge))
        await self.ready()
        self.assertEqual(await self.run_job("charge"), ["charged"])
        for job in ("charge", "again"):
            self.assertEqual(await self.run_job(job), ["left alone: 5"])

    async def test_maintenance(self) -> None:
        """Two jobs that need the same lock run one after the other."""
        compact = """
cronstable lock run db-maintenance --scope global --wait --timeout 60 \\
  -- sh -c 'echo begin; sleep 0.5; echo end'
        """
        self.start(a_job("one", compact), a_job("two", compact))
        await self.ready()
        await self.begin("one")
        await self.begin("two")
        for job in ("one", "two"):
            end = await self.daemon.wait_for_end_of(job, 30)
            self.assertEqual(end.code, 0)
        said = [line.split("] ")[1] for line in self.daemon.stdout if " stdout] " in line]
        self.assertEqual(said, ["begin", "end"] * 2)

    async def test_forgotten_lock(self) -> None:
        """A lock that a job forgets is free when its run is over."""
        self.start(
            a_job("forgets", "cronstable lock acquire m --global >/dev/null; kill -9 $$"),
            a_job("next", "cronstable lock run m --global -- echo had it"),
        )
        await self.ready()
        await self.run_job("forgets")
        self.assertEqual(await self.run_job("next"), ["had it"])

    async def test_hand_over(self) -> None:
        """A later run, and a job that may, get what a run has published."""
        self.start(
            a_job(
                "build", "echo a,b > report.csv; cronstable artifact put latest-report report.csv"
            ),
            a_job(
                "use",
                "cronstable artifact get latest-report --scope build -o got.csv; cat got.csv\n"
                "cronstable artifact list --scope build",
                "stateAllowedScopes:",
                "  - build",
            ),
            a_job("may-not", 'cronstable artifact list --scope build 2>&1; echo "status $?"'),
        )
        await self.ready()
        (digest,) = await self.run_job("build")
        self.assertRegex(digest, "^[0-9a-f]{64}$")
        self.assertEqual(await self.run_job("use"), ["a,b", "latest-report"])
        refusal, status = await self.run_job("may-not")
        self.assertIn("stateAllowedScopes", refusal)
        self.assertEqual(status, "status 1")


class SecretsTests(JobApiCase):
    """Secrets of a run."""

    SECRET = "s3kr3t-value-of-the-report"

    async def test_everywhere_hidden(self) -> None:
        """A secret reaches its job, and neither environment, log, pages, archive nor store."""
        self.start(
            a_job(
                "build-report",
                """
token=$(cronstable secret get API_TOKEN)
echo "length ${#token}"
echo "careless $token and $(printf %s "$token" | base64)"
env | grep -c "$token"
cronstable secret list
cronstable secret get NOPE
echo "status $?"
                """,
                "saveLimit: 100",
                "archiveOutput: true",
                "secrets:",
                "  - name: API_TOKEN",
                "    fromEnvVar: REPORT_API_TOKEN",
                "  - name: MISSING",
                "    fromFile: @WORK@/no-such-file",
            ),
            env={"REPORT_API_TOKEN": self.SECRET},
        )
        await self.ready()
        # The daemon's own variable is in the environment of its jobs: that is the operator's doing.
        said = await self.run_job("build-report")
        self.assertEqual(
            said,
            [
                f"length {len(self.SECRET)}",
                "careless *** and ***",
                "1",
                "API_TOKEN",
                "status 4",
            ],
        )
        await self.daemon.wait_for_log("Job build-report: could not stage secret 'MISSING'")
        for path in ("/jobs/build-report/logs", "/jobs/build-report/runs"):
            answer = await deferToThread(self.read_some, path)
            self.assertNotIn(self.SECRET.encode(), answer)
        await self.daemon.stop()
        self.assertNotIn(self.SECRET, "\n".join([*self.daemon.stdout, *self.daemon.stderr]))
        store = self.daemon.directory / "state"
        kept = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
        self.assertIn(b"careless ***", kept)
        self.assertNotIn(self.SECRET.encode(), kept)

    def read_some(self, path: str) -> bytes:
        """Return the beginning of an answer that may go on."""
        url = f"http://127.0.0.1:{self.daemon.port}{path}"
        done = subprocess.run(["curl", "-s", "-m", "2", url], capture_output=True, timeout=30)
        self.assertNotEqual(done.stdout, b"")
        return done.stdout


class LifeTests(JobApiCase):
    """The endpoint over the life of runs and of the daemon."""

    async def test_variables(self) -> None:
        """A job that is due at once is told where to ask, which slot it is for, and its attempt."""
        self.start(
            a_job(
                "tick",
                "env | grep ^CRONSTABLE_ | grep -v _TEST_TREE | sort; exit 1",
                "onFailure:",
                "  retry:",
                "    maximumRetries: 1",
                "    initialDelay: 0.1",
                "    maximumDelay: 1",
                "    backoffMultiplier: 1",
                schedule="* * * * * * *",
            )
        )
        await self.daemon.wait_for_end_of("tick", 30)
        await self.daemon.wait_for_output(r"\[tick stdout\] CRONSTABLE_ATTEMPT=1")
        await self.daemon.wait_for_end_of("tick", 30, count=2)
        said = self.output("[tick stdout] ")
        first, second = said[:7], said[7:14]
        names = [line.partition("=")[0][11:] for line in first]
        self.assertEqual(
            names,
            ["ATTEMPT", "HOST", "JOB_NAME", "RUN_ID", "SCHEDULED_AT", "STATE_TOKEN", "STATE_URL"],
        )
        self.assertIn("CRONSTABLE_ATTEMPT=0", first)
        at = [line for line in first if "SCHEDULED_AT" in line]
        self.assertRegex(at[0], r"=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")
        self.assertIn(at[0], second)
        self.assertIn("CRONSTABLE_ATTEMPT=1", second)
        self.assertNotEqual(first[3], second[3])

    async def test_tls(self) -> None:
        """Over TLS a job verifies its daemon by the authority that it is told."""
        authority = Authority(Path(self.mktemp()).resolve())
        pair = authority.issue("server")
        secure = (
            "state\n  jobApi:\n    listen: https://localhost:0\n    tls:\n"
            f"      cert: {pair.cert}\n      key: {pair.key}\n      ca: {authority.cert}\nweb"
        )
        self.start(
            a_job(
                "asks",
                'cronstable state set k v; cronstable state get k; echo "$CRONSTABLE_STATE_URL"',
            ),
            head=STATE.replace("state\nweb", secure),
        )
        await self.daemon.wait_for_log(r"state job API listening on https://localhost:\d+")
        await self.daemon.wait_for_log("filesystem backend ready")
        await self.daemon.wait_for_log("web: started listening")
        value, url = await self.run_job("asks")
        self.assertEqual(value, "v")
        self.assertRegex(url, r"^https://localhost:\d+$")

    async def test_two_daemons(self) -> None:
        """A lock that a job of one daemon holds is taken for a job of another, and then free."""
        self.start(
            a_job(
                "holds",
                "cronstable lock acquire m --global; while [ ! -e go ]; do sleep 0.05; done",
            )
        )
        await self.ready()
        first = self.daemon
        await self.begin("holds")
        await first.wait_for_output(r"\[holds stdout\] [0-9a-f]{32}")
        shared = STATE.replace("@WORK@/state", str(first.directory / "state"))
        wants = "cronstable lock run m --global {} -- echo had it"
        self.start(
            a_job("tries", wants.format("")),
            a_job("waits", wants.format("--wait --timeout 30")),
            head=shared,
        )
        await self.ready()
        self.assertEqual(await self.run_job("tries"), [])
        self.assertEqual(self.daemon.ends("tries")[0].code, 3)
        await self.begin("waits")
        await self.daemon.wait_for_log("Job waits spawned")
        (first.directory / "go").touch()
        await self.daemon.wait_for_output(r"\[waits stdout\] had it")

    async def test_leftover(self) -> None:
        """A process that outlives its run is let in no more."""
        self.start(
            a_job(
                "leaves",
                """
cronstable state set k before
(while [ ! -e over ]; do sleep 0.05; done
 cronstable state set k after 2>err; echo "status $?" > status) >/dev/null 2>&1 &
                """,
                "captureStderr: false",
            ),
            a_job("looks", "cronstable state get k --scope leaves", "stateAllowedScopes: [leaves]"),
        )
        await self.ready()
        await self.run_job("leaves")
        (self.daemon.directory / "over").touch()
        status = self.daemon.directory / "status"
        await deferToThread(
            subprocess.run,
            ["sh", "-c", 'while [ ! -s "$0" ]; do sleep 0.05; done', str(status)],
            timeout=30,
            check=True,
        )
        self.assertEqual(status.read_text(), "status 1\n")
        self.assertIn("401", (self.daemon.directory / "err").read_text())
        self.assertEqual(await self.run_job("looks"), ["before"])

    async def test_check(self) -> None:
        """The check of a run may ask as its run does."""
        self.start(
            a_job(
                "made",
                "cronstable state set done yes",
                "verify:",
                '  command: test "$(cronstable state get done)" = yes',
            )
        )
        await self.ready()
        await self.run_job("made")
        self.assertTrue(self.daemon.ends("made")[0].well, self.daemon.log)

    async def test_switched_off(self) -> None:
        """Switched off by a reload, it is gone: jobs run, and are told nothing of it."""
        command = "echo url ${CRONSTABLE_STATE_URL:-none}"
        self.start(a_job("tell", command))
        await self.ready()
        (told,) = await self.run_job("tell")
        self.assertRegex(told, r"^url http://127\.0\.0\.1:\d+$")
        off = STATE.replace("state\nweb", "state\n  jobApi:\n    enabled: false\nweb")
        self.daemon.write(off + a_job("tell", command))
        self.daemon.signal(1)
        await self.daemon.wait_for_log("onfiguration.*(reload|changed|applied)|Reload")
        for _ in range(50):
            (told,) = await self.run_job("tell")
            if told == "url none":
                break
        self.assertEqual(told, "url none")

    async def test_no_store(self) -> None:
        """While the store is away jobs run, and what they ask is an outage, not absence."""
        self.start(
            a_job("asks", 'cronstable state get k 2>&1; echo "status $?"; cronstable secret list')
        )
        await self.ready()
        state = self.daemon.directory / "state"
        state.rename(self.daemon.directory / "away")
        said = await self.run_job("asks")
        self.assertEqual(said[1], "status 1")
        self.assertIn("unavailable", said[0])
        await self.daemon.wait_for_log("the store cannot serve jobs")

    async def test_stop(self) -> None:
        """A job that runs on while the daemon drains is served to its end."""
        self.start(
            a_job(
                "slow",
                "while [ ! -e go ]; do sleep 0.05; done; cronstable state set k v; echo $?",
            )
        )
        await self.ready()
        await self.begin("slow")
        await self.daemon.wait_for_log("Job slow spawned")
        self.daemon.signal(15)
        await self.daemon.wait_for_log("Shutting down")
        (self.daemon.directory / "go").touch()
        self.assertEqual(await self.daemon.wait_for_end(), 0)
        self.assertEqual(self.output("[slow stdout] "), ["0"])
        document = next((self.daemon.directory / "state").rglob("k.doc"))
        self.assertEqual(json.loads(document.read_bytes())["data"]["value"], "v")
