"""
The streams there are, how much of each is kept, and which records somebody acts upon.

docs/store-format.md, "Streams", tells what each record holds.
"""

from __future__ import annotations

CATCHUP_KEEP = 8
DAG_CATCHUP_KEEP = 8
RETRY_KEEP = 8
PAUSE_KEEP = 8
BOOT_KEEP = 32
INFLIGHT_KEEP = 8
SLOT_KEEP = 8
COUNTERS_KEEP = 4
MANIFEST_KEEP = 512
REBOOT_RAN_KEEP = 512

META = "meta"
REBOOT_RAN = "cluster/reboot-ran"

LEAST_RUNS = 2
"""Below this a pair of peers' records that landed inverted could lose the newer one."""

_OBSERVING = ("logs/", "counters/", "manifests/", "inflight/")


def runs(job: str) -> str:
    """Return the ledger of a job."""
    return f"runs/{job}"


def logs(job: str) -> str:
    """Return the archived output of a job."""
    return f"logs/{job}"


def catchup(job: str) -> str:
    """Return the catch-up checkpoints of a job."""
    return f"catchup/{job}"


def dag_catchup(dag: str) -> str:
    """Return the catch-up checkpoints of a workflow."""
    return f"catchup-dag/{dag}"


def retries(job: str) -> str:
    """Return the retry sequence of a job."""
    return f"retries/{job}"


def paused(job: str) -> str:
    """Return the pauses of a job."""
    return f"paused/{job}"


def reboot(job: str) -> str:
    """Return the boot markers of a job."""
    return f"reboot/{job}"


def inflight(job: str) -> str:
    """Return the in-flight records of a job."""
    return f"inflight/{job}"


def slots(job: str) -> str:
    """Return the cancel requests aimed at holders of a job's cluster slot."""
    return f"slots/{job}"


def counters(host: str) -> str:
    """Return the counter snapshots of a host."""
    return f"counters/{host}"


def artifacts(scope: str) -> str:
    """Return the artifact records of a scope."""
    return f"artifacts/{scope}"


def manifests(host: str) -> str:
    """Return the manifests of a host."""
    return f"manifests/{host}"


def runs_to_keep(max_runs: int) -> int | None:
    """Return how many rows C{state.maxRunsPerJob} keeps; None = all."""
    return None if max_runs <= 0 else max(LEAST_RUNS, max_runs)


def acknowledges(stream: str) -> bool:
    """
    Return whether somebody acts on a record of this stream once it is written.

    The others only tell what was; C{state.fsync: rename} leaves their names to the system.
    """
    return not stream.startswith(_OBSERVING)


def is_stamp(stream: str) -> bool:
    """Return whether this is the stream that says which scheme the store follows."""
    return stream == META
