"""
Boot markers: with a store, a C{@reboot} job runs once per boot, not per daemon start.

C{state.boot} says whether that is a boot of the host or a start of the container.  The marker is
written before the launch, so a crash between the two errs towards not running again.  It belongs
to the job's definition: a changed job runs once more (docs/operations.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.platform import BootIdentity
from cronstable.runs.digests import Digest
from cronstable.runs.gates import Hold, No
from cronstable.runs.record import Cause
from cronstable.runs.request import RunRequest
from cronstable.state import streams
from cronstable.state.errors import TROUBLE
from cronstable.state.instants import to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable")


class Kept:
    """A hold on something that stays as it is, whatever becomes of the run."""

    def release(self) -> None:
        """Nothing to give back."""

    def undo(self) -> None:
        """What was written stays: not running is the safer mistake."""


class BootMarks:
    """The claim of a boot run on this boot; C{boots} has one for each value of C{state.boot}."""

    name = "boot-marker"
    causes: frozenset[Cause] = frozenset(("boot",))

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        store: StoreService,
        boots: Mapping[str, BootIdentity],
        digest: Digest,
        survives: Callable[[str], bool],
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._store = store
        self._boots = boots
        self._digest = digest
        self._survives = survives

    def claim(self, request: RunRequest, job: JobConfig) -> Hold | No | Deferred[Hold | No]:
        """Take this boot for the job's one run, unless it is taken."""
        if not self._store.configured:
            return Kept()
        if self._survives(job.name):
            log.info("Job %s (@reboot) still runs from an earlier daemon; skipping", job.name)
            return No("still-running", "its boot run still lives", transient=False)
        return Deferred.fromCoroutine(self._claim(job))

    def late(self, request: RunRequest, job: JobConfig) -> Hold | No:
        """Run without the marker, or not, as C{state.onStoreUnavailable} says."""
        return self._unverified(job, "it does not answer in time")

    def came_late(self, answer: Hold | No, request: RunRequest, job: JobConfig) -> None:
        """A marker that was written after all stays, whatever became of the run."""

    def stands_for_boot(self, job: JobConfig) -> None:
        """Somebody has started the job by hand: that was its run of this boot."""
        if self._store.configured:
            self._mark(job)

    async def covers(self, job: JobConfig) -> bool:
        """Return whether this boot's run of C{job} has been; raises OSError."""
        marker = await self._store.ask(lambda store: self._newest(store, job.name))
        return marker is not None and self._covered_by(marker, job)

    async def _claim(self, job: JobConfig) -> Hold | No:
        if not self._boot().known:
            log.warning("Job %s (@reboot): boots cannot be told apart here; it runs", job.name)
        try:
            if await self.covers(job):
                log.info("Job %s (@reboot) already ran during this OS boot; skipping", job.name)
                return No("already-ran", "it has run since the host booted", transient=False)
        except TROUBLE as error:
            if not self._store.fail_closed:
                self._mark(job)
            return self._unverified(job, error)
        if not await self._mark(job):
            return self._unverified(job, "it cannot be written")
        return Kept()

    def _unverified(self, job: JobConfig, why: object) -> Hold | No:
        log.warning("Job %s: its boot marker cannot be relied on: %s", job.name, why)
        if self._store.fail_closed:
            return No("store", "the store cannot tell whether the job has run since the boot")
        return Kept()

    def _mark(self, job: JobConfig) -> Deferred[bool]:
        boot = self._boot()
        record = {
            "host": self._identity.host,
            "bootId": boot.boot_id,
            "bootTime": boot.boot_time,
            "jobDigest": self._digest(job),
            "at": to_text(self._clock.now()),
        }
        stream = streams.reboot(job.name)
        return self._store.append(job.name, "reboot-marker", stream, record, streams.BOOT_KEEP)

    def _boot(self) -> BootIdentity:
        config = self._store.config
        return self._boots["host" if config is None else config.boot]

    def _newest(self, store: Store, job: str) -> Mapping[str, Any] | None:
        markers: list[dict[str, Any]] = store.records.read(streams.reboot(job), strict=True)
        ours = [each for each in markers if each.get("host") == self._identity.host]
        return ours[-1] if ours else None

    def _covered_by(self, marker: Mapping[str, Any], job: JobConfig) -> bool:
        if marker.get("jobDigest") != self._digest(job):
            return False
        boot_id, boot_time = marker.get("bootId"), marker.get("bootTime")
        return self._boot().same_boot(
            boot_id if isinstance(boot_id, str) else None,
            float(boot_time) if isinstance(boot_time, (int, float)) else None,
        )
