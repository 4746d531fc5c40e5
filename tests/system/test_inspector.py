"""The real process with a real store: what it writes is what its API shows."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.web.test_vectors import Vector, differences, shape

CONFIG = """\
state:
  path: '@WORK@/state'
web:
  listen: ["http://127.0.0.1:@PORT@"]
jobs:
  - name: ok-minutely
    schedule: "0 0 1 1 *"
    command: "true"
  - name: chatty
    schedule: "0 0 1 1 *"
    command: echo hunter2
    captureStdout: true
    archiveOutput: true
  - name: boot-once
    schedule: "@reboot"
    command: "true"
  - name: long
    schedule: "0 0 1 1 *"
    command: exec sleep 100
"""

WORKFLOW = """\
  - name: sharing
    schedule: "0 0 1 1 *"
    command: "true"
    stateAllowedScopes: [shared]
dags:
  - name: flow
    tasks:
      - id: task
        command: "true"
        stateAllowedScopes: [inner]
"""


class InspectorTests(TestCase):
    """GET /state and its like, and trends, of a daemon that does real work."""

    timeout = 90

    async def shown(self, daemon: Daemon, path: str) -> Any:
        """Return the JSON at a path."""
        answer = await daemon.get(path)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    async def start(self, daemon: Daemon, name: str) -> None:
        """Start a job by hand."""
        answer = await daemon.request("POST", f"/jobs/{name}/start")
        self.assertEqual(answer.status, 200, answer.body)

    async def test_what_is_written_is_shown(self) -> None:
        """Runs, live runs, boots, pauses and manifests have the members that other nodes expect."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        await daemon.wait_for_log("filesystem backend ready")
        await daemon.wait_for_end_of("boot-once")
        for name in ("ok-minutely", "chatty"):
            await self.start(daemon, name)
            await daemon.wait_for_end_of(name)
        await self.start(daemon, "long")
        await daemon.request("POST", "/jobs/long/pause", b'{"note": "why"}')
        for name, stream in (
            ("runs", "runs%2Fok-minutely"),
            ("inflight", "inflight%2Flong"),
            ("reboot", "reboot%2Fboot-once"),
            ("paused", "paused%2Flong"),
        ):
            with self.subTest(stream=stream):
                # Trends wait for what is still to be written of the job.
                job = stream.partition("%2F")[2]
                await self.shown(daemon, f"/jobs/{job}/trends")
                found = await self.shown(daemon, f"/state/records?stream={stream}")
                recorded = Vector.read(f"state-records-{name}").response["body"]["json"]
                self.assertTrue(found["records"])
                self.assertEqual(differences(shape(recorded), shape(found)), [])
        inventory = await self.shown(daemon, "/state")
        self.assertEqual(inventory["enumerable"], True)
        self.assertEqual(inventory["view"]["path"], f"{daemon.directory}/state/default")
        host = inventory["node"]["host"]
        found = await self.shown(daemon, f"/state/records?stream=manifests%2F{host}&limit=1")
        recorded = Vector.read("state-records-manifests").response["body"]["json"]
        self.assertEqual(differences(shape(recorded), shape(found)), [])
        self.assertEqual(inventory["records"]["logs"]["count"], 1)
        answer = await daemon.get("/state/records?stream=logs%2Fchatty")
        self.assertEqual(answer.status, 403)

    async def test_trends_survive(self) -> None:
        """What trends say outlives the daemon, with every run that ended before they are asked."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        await daemon.wait_for_log("filesystem backend ready")
        for count in (1, 2, 3):
            await self.start(daemon, "ok-minutely")
            await daemon.wait_for_end_of("ok-minutely", count=count)
            trends = await self.shown(daemon, "/jobs/ok-minutely/trends")
            self.assertEqual(trends["source"], "durable")
            self.assertEqual(trends["windows"]["1h"]["success"], count)
        self.assertEqual(await daemon.stop(), 0)
        again = Daemon(self, CONFIG, directory=daemon.directory)
        await again.wait_for_log("started listening on")
        await again.wait_for_log("rehydrated run history")
        trends = await self.shown(again, "/jobs/ok-minutely/trends")
        self.assertEqual((trends["source"], trends["windows"]["all"]["total"]), ("durable", 3))

    async def test_manifest_names_workflows(self) -> None:
        """What workflows use is said as well, though none are run: it is somebody's."""
        daemon = Daemon(self, CONFIG + WORKFLOW)
        await daemon.wait_for_log("started listening on")
        host = (await self.shown(daemon, "/state"))["node"]["host"]
        found = await self.shown(daemon, f"/state/records?stream=manifests%2F{host}")
        (record,) = found["records"]
        self.assertEqual(record["dags"], ["flow"])
        self.assertEqual(record["scopes"], ["global", "inner", "shared"])
        self.assertEqual(len(record["jobs"]), 5)
