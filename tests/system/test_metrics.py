"""Scrapes of the real process, read with the client library's own parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import TestCase

from tests.metrics.world import samples
from tests.system.harness import Daemon

CONFIG = """\
web:
  listen: ["http://127.0.0.1:@PORT@"]
  headers: {X-Demo: "yes"}
  metrics: {public: true, durationBuckets: [0.5, 30]}
jobs:
  - name: 'quoted "name"'
    schedule: "0 0 1 1 *"
    command: exit 3
  - name: unstartable
    schedule: "0 0 1 1 *"
    command: [/no/such/command]
  - name: idle
    schedule: "0 0 1 1 *"
    command: "true"
    enabled: false
"""
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class MetricsTests(TestCase):
    """Metrics of a daemon that does real work."""

    timeout = 60

    async def scrape(self, daemon: Daemon, **headers: str) -> Mapping[Any, float]:
        """Return every series."""
        answer = await daemon.get("/metrics", headers)
        self.assertEqual((answer.status, answer.headers["x-demo"]), (200, "yes"))
        text = answer.body.decode("utf-8")
        return samples(text, openmetrics="Accept" in headers)

    def value(self, found: Mapping[Any, float], family: str, **labels: str) -> float | None:
        """Return one value of a scrape."""
        return found.get((f"cronstable_{family}", frozenset(labels.items())))

    async def test_counts(self) -> None:
        """Runs are counted whichever format is asked for; so are those that cannot start."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        for name in ("quoted%20%22name%22", "unstartable"):
            self.assertEqual((await daemon.request("POST", f"/jobs/{name}/start")).status, 200)
        await daemon.wait_for_end_of("unstartable")
        await daemon.wait_for_end_of('quoted "name"')
        for headers in ({}, OPENMETRICS):
            found = await self.scrape(daemon, **headers)
            quoted = {"job_name": 'quoted "name"'}
            runs = self.value(found, "job_runs_total", status="failure", **quoted)
            self.assertEqual(runs, 1.0)
            self.assertEqual(self.value(found, "job_last_run_exit_code", **quoted), 3.0)
            self.assertEqual(self.value(found, "job_start_failures_total", **quoted), 0.0)
            starts = self.value(found, "job_start_failures_total", job_name="unstartable")
            self.assertEqual(starts, 1.0)
            bounds = {dict(labels)["le"] for name, labels in found if name.endswith("bucket")}
            self.assertLessEqual({"0.5", "30.0", "+Inf"}, bounds)
            self.assertEqual(self.value(found, "jobs", state="disabled"), 1.0)
            self.assertEqual(self.value(found, "slots_unaccounted"), 0.0)
            self.assertFalse([name for name, _ in found if not name.startswith("cronstable_")])

    async def test_reloads(self) -> None:
        """Counters outlive a new web application; a refused file shows, and so does its end."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        await daemon.request("POST", "/jobs/unstartable/start")
        await daemon.wait_for_end_of("unstartable")
        before = await self.scrape(daemon)
        applied = "config_last_reload_success_timestamp_seconds"
        daemon.write("jobs: [")
        daemon.signal(1)
        await daemon.wait_for_log("not updating any of the config")
        refused = await self.scrape(daemon)
        self.assertEqual(self.value(refused, "config_last_reload_successful"), 0.0)
        self.assertEqual(self.value(refused, applied), self.value(before, applied))
        daemon.write(CONFIG.replace("[0.5, 30]", "[0.5, 40]").replace("idle", "other"))
        daemon.signal(1)
        await daemon.wait_for_log("Job set id", count=2)
        after = await self.scrape(daemon)
        self.assertEqual(self.value(after, "config_last_reload_successful"), 1.0)
        self.assertGreater(self.value(after, applied), self.value(before, applied))
        runs = self.value(after, "job_runs_total", job_name="unstartable", status="failure")
        self.assertEqual(runs, 1.0)
        # New bounds mean new histograms, and nothing else.
        seen = self.value(after, "job_duration_seconds_count", job_name="unstartable")
        self.assertEqual(seen, 0.0)
        self.assertIsNone(self.value(after, "job_enabled", job_name="idle"))
        self.assertEqual(self.value(after, "job_enabled", job_name="other"), 0.0)
