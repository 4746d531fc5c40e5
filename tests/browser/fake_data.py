"""
The jobs that the fake daemon shows: values that follow from their definition and the present time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import attrs

Json = dict[str, Any]

HOSTILE_NAME = '<img src=x onerror="document.title=1">'
HOSTILE_LINES = (
    "<script>document.title='owned'</script>",
    "\x1b[2J\x1b]0;owned\x07cleared \x1b[31mred\x1b[0m after",
    "turn \u202e around",
    "{{ 7*7 }} &lt;b&gt;",
    "caf\ufffd \x00 end",
)


def iso(at: float | None) -> str | None:
    """Return an instant as the daemon writes it."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="microseconds")


@attrs.define
class FakeJob:
    """One job with a schedule that repeats every C{every} seconds and a history that follows."""

    name: str
    schedule: str
    every: float
    phase: float = 0.0
    command: str = "/usr/local/bin/run --quiet"
    duration: float = 2.0
    timezone: str | None = "UTC"
    fails: float = 0.0
    """The part of earlier runs that failed."""
    last: str = "success"
    exit_code: int | None = 0
    reason: str | None = None
    enabled: bool = True
    running_since: float | None = None
    paused: Json | None = None
    never_ran: bool = False
    gaps: tuple[tuple[float, float, str, str | None], ...] = ()
    """Slots (from age, to age, result, reason) that did not run, ages in seconds."""
    extra: Json = attrs.field(factory=dict)
    added: list[Json] = attrs.field(factory=list)
    """Runs that came by an action, oldest first."""

    def slots(self, since: float, now: float) -> Iterator[tuple[float, float]]:
        """Yield (slot, start) of each due time in C{since}..C{now}, newest first."""
        if self.every <= 0 or not self.enabled:
            return
        at = now - (now - self.phase) % self.every
        while at >= since:
            yield at, at + 0.004
            at -= self.every

    def gap(self, at: float, now: float) -> tuple[str, str | None] | None:
        """Return (result, reason) when the slot at C{at} did not run."""
        for newest, oldest, result, reason in self.gaps:
            if newest <= now - at <= oldest:
                return result, reason
        return None

    def run_at(self, start: float, newest: bool) -> Json:
        """Return the finished run that began at C{start}."""
        dice = random.Random(f"{self.name} {int(start)}")
        outcome = self.last if newest else ("failure" if dice.random() < self.fails else "success")
        duration = round(self.duration * (0.7 + 0.6 * dice.random()), 6)
        failed = outcome == "failure"
        code = self.exit_code if newest else (1 if failed else 0)
        reason = self.reason if newest else None
        if failed and reason is None:
            reason = f"command exited with code {code}"
        return finished(outcome, start, duration, code, reason)

    def runs(self, now: float, limit: int = 50) -> list[Json]:
        """Return the newest finished runs, oldest first."""
        if self.never_ran:
            return self.added[-limit:]
        found: list[Json] = []
        span = self.every if self.every > 0 else 86400.0
        newest = True
        for at, start in self._past(now, span, limit + 5):
            live = self.running_since is not None and start >= self.running_since
            if live or self.gap(at, now) is not None or start + self.duration * 1.3 > now:
                continue
            found.append(self.run_at(start, newest))
            newest = False
            if len(found) >= limit:
                break
        return (found[::-1] + self.added)[-limit:]

    def _past(self, now: float, span: float, count: int) -> Iterator[tuple[float, float]]:
        at = now - (now - self.phase) % span
        for _ in range(count * 4):
            yield at, at + 0.004
            at -= span

    def job(self, now: float) -> Json:
        """Return the job as C{GET /jobs} shows it."""
        runs = self.runs(now, 20)
        running = self.running_since is not None
        due = None
        if self.enabled and not running and self.every > 0:
            due = self.every - (now - self.phase) % self.every
        return {
            "name": self.name,
            "enabled": self.enabled,
            "schedule": self.schedule,
            "command": self.command,
            "captureStdout": True,
            "captureStderr": True,
            "utc": self.timezone is not None,
            "timezone": self.timezone,
            "running": running,
            "pids": [4711] if running else [],
            "scheduled_in": due,
            "never_fires": False,
            "schedule_findings": [],
            "last_run": runs[-1] if runs else None,
            "history": [{"outcome": r["outcome"], "duration": r["duration"]} for r in runs],
            "paused": self.paused,
            **self.extra,
        }


def finished(
    outcome: str, start: float, duration: float, code: int | None, reason: str | None
) -> Json:
    """Return a run as the daemon shows it."""
    unknown = outcome == "unknown"
    return {
        "outcome": outcome,
        "exit_code": None if unknown else code,
        "started_at": None if unknown else iso(start),
        "finished_at": iso(start if unknown else start + duration),
        "duration": None if unknown else duration,
        "fail_reason": reason,
        "skip_reason": None,
        "resources": None,
        "ranAt": iso(start if unknown else start + duration),
    }


def stats(runs: list[Json]) -> Json:
    """Return the statistics that go with a list of runs."""
    count = {
        kind: sum(run["outcome"] == kind for run in runs)
        for kind in ("success", "failure", "cancelled", "unknown")
    }
    decided = count["success"] + count["failure"]
    lengths = [run["duration"] for run in runs if run["duration"] is not None]
    return {
        "total": len(runs),
        **count,
        "success_rate": count["success"] / decided if decided else None,
        "avg_duration": sum(lengths) / len(lengths) if lengths else None,
        "min_duration": min(lengths, default=None),
        "max_duration": max(lengths, default=None),
        "last_duration": lengths[-1] if lengths else None,
    }


def few_jobs(now: float) -> list[FakeJob]:
    """Return a small fleet in which every state and every hostile text occurs once."""
    minute = now - now % 60
    late = [
        {
            "check": "maxTimeSinceSuccess",
            "since": iso(now - 5400),
            "observed_seconds": 9000.0,
            "threshold_seconds": 3600,
        }
    ]
    never = {"code": "never-fires", "level": "warning", "message": "this day never comes"}
    waiting = {
        "id": "q1",
        "job": "thumbnails",
        "priority": 5,
        "slots": 1,
        "queuedAt": now - 40,
        "expiresAt": now + 3000,
        "state": "queued",
        "position": 2,
        "waitingReason": "Needs 1 slot; 0 available",
        "digest": "0" * 64,
    }
    return [
        FakeJob(
            "backup",
            "30 2 * * *",
            86400,
            9000,
            "/usr/local/bin/backup --all /srv/data",
            duration=840,
            timezone="Europe/Berlin",
        ),
        FakeJob(
            "sync",
            "*/5 * * * *",
            300,
            0,
            "rsync -a --delete /srv/data/ node-b:/srv/data/",
            duration=9,
            fails=0.15,
            last="failure",
            exit_code=1,
            reason="command exited with code 1",
        ),
        FakeJob(
            "mail-digest",
            "*/30 * * * *",
            1800,
            0,
            "digest --send",
            duration=4,
            last="failure",
            exit_code=1,
            reason="command exited with code 1",
        ),
        FakeJob(
            "import-orders",
            "*/10 * * * *",
            600,
            0,
            "import-orders --from sftp",
            duration=120,
            running_since=now - now % 600 + 0.004,
            extra={
                "running_resources": {
                    "cpu_percent": 63.5,
                    "cpu_seconds": 41.2,
                    "rss_bytes": 184_549_376,
                    "instances": 1,
                }
            },
        ),
        FakeJob(
            "rotate-logs", "15 * * * *", 3600, 900, "logrotate /etc/logrotate.conf", duration=1.4
        ),
        FakeJob(
            "report-weekly",
            "0 9 * * mon-fri",
            86400,
            32400,
            "make-report --week",
            duration=65,
            timezone="America/New_York",
        ),
        FakeJob(
            "heartbeat",
            "*/15 * * * * * *",
            15,
            0,
            "curl -fsS http://127.0.0.1:9000/ping",
            duration=0.08,
        ),
        FakeJob(
            "cleanup-tmp",
            "*/20 * * * *",
            1200,
            0,
            "find /tmp -mtime +7 -delete",
            duration=6,
            gaps=((0, 5000, "skipped", "paused"),),
            paused={
                "since": iso(now - 5000),
                "until": iso(now + 2400),
                "channel": "api",
                "note": "disk is being replaced",
                "by": "ops",
            },
        ),
        FakeJob(
            "thumbnails",
            "*/15 * * * *",
            900,
            60,
            "make-thumbnails",
            duration=35,
            extra={"pool": {"name": "imaging", "slots": 1, "priority": 5, "queued": [waiting]}},
        ),
        FakeJob(
            "watch-inbox",
            "*/30 * * * *",
            1800,
            600,
            "check-inbox",
            duration=3,
            gaps=((0, 9000, "missed", "overlap"),),
            extra={
                "sla": {
                    "state": "late",
                    "breaches": late,
                    "thresholds": {"maxTimeSinceSuccessSeconds": 3600},
                }
            },
        ),
        FakeJob(
            "reindex",
            "0 */2 * * *",
            7200,
            0,
            "reindex --full",
            duration=300,
            last="cancelled",
            exit_code=-15,
            reason="cancelled by ops",
        ),
        FakeJob(
            "crash-probe",
            "0 */6 * * *",
            21600,
            0,
            "probe --deep",
            duration=20,
            last="unknown",
            reason="the daemon ended while it ran",
        ),
        FakeJob(
            "retry-me",
            "0 */3 * * *",
            10800,
            1800,
            "flaky --once",
            duration=12,
            last="failure",
            exit_code=-100,
            reason="still running after 10 s (executionTimeout)",
            extra={
                "retry": {
                    "attempt": 2,
                    "maxAttempts": 5,
                    "delaySeconds": 120.0,
                    "nextRetryAt": iso(now + 75),
                }
            },
        ),
        FakeJob("ledger-close", "0 0 L * *", 2_592_000, minute, "close-ledger", never_ran=True),
        FakeJob(
            "leap-job",
            "0 0 30 2 *",
            0,
            0,
            "true",
            never_ran=True,
            extra={"never_fires": True, "schedule_findings": [never]},
        ),
        FakeJob(
            "legacy-export",
            "0 5 * * *",
            86400,
            18000,
            "export --legacy",
            enabled=False,
            never_ran=True,
        ),
        FakeJob(
            HOSTILE_NAME,
            "0 4 * * *",
            86400,
            14400,
            "echo '</script><script>alert(1)</script>' \u202e evil",
            duration=1,
        ),
        FakeJob(
            "counter",
            "0 0 1 1 *",
            0,
            0,
            "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.2; done",
            never_ran=True,
        ),
        FakeJob("name with space/slash", "45 3 * * *", 86400, 13500, "echo odd", duration=0.5),
        FakeJob(
            "\u65e5\u672c \u8a9e \U0001f680",
            "H H * * *",
            86400,
            40000,
            "echo hello",
            duration=1,
            extra={"schedule_resolved": "6 11 * * *"},
        ),
    ]


def many_jobs(now: float, count: int) -> list[FakeJob]:
    """Return a large fleet with a few failures in it."""
    shapes = (
        ("*/5 * * * *", 300),
        ("*/15 * * * *", 900),
        ("0 * * * *", 3600),
        ("30 */6 * * *", 21600),
        ("0 3 * * *", 86400),
        ("* * * * *", 60),
    )
    found = []
    for number in range(count):
        schedule, every = shapes[number % len(shapes)]
        bad = number % 97 == 13
        found.append(
            FakeJob(
                f"tenant-{number:04d}-{('sync', 'bill', 'mail', 'scan')[number % 4]}",
                schedule,
                every,
                0,
                f"/opt/jobs/run --tenant {number} --mode batch",
                duration=0.5 + number % 40,
                fails=0.1 if bad else 0.01,
                last="failure" if bad else "success",
                exit_code=2 if bad else 0,
                reason="command exited with code 2" if bad else None,
            )
        )
    return found
