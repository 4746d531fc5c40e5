"""
Garbage collection: what nobody uses goes once it is old, and whatever is in doubt stays.

docs/store-format.md, "Garbage collection", specifies it.  One pass may run on every node at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cronstable.state import names, stems
from cronstable.state.errors import TROUBLE, Unreadable
from cronstable.state.instants import from_text
from cronstable.state.manifests import InUse, Names, history_spans, in_use
from cronstable.state.records import SIDECAR
from cronstable.state.stats import measured
from cronstable.state.store import Store
from cronstable.state.streams import MANIFEST_KEEP, artifacts
from cronstable.state.sweeps import Sweeps

log = logging.getLogger("cronstable.state")

DEFAULT_GRACE = 604_800.0
"""Seconds for which what nobody uses stays, where no C{state.gcGraceSeconds} above 0 is set."""

OF_JOBS = ("runs/", "logs/", "catchup/", "retries/", "reboot/", "inflight/", "slots/")
OF_HOSTS = ("counters/", "manifests/")

DEFERRED = (
    "the manifest history does not yet span gcGraceSeconds, so the store cannot prove what is"
    " orphaned"
)

NEWER_AT_WORK = (
    "the record %s of a newer scheme was set aside lately, so the store cannot prove what nodes"
    " of that release use"
)

Keep = Mapping[str, frozenset[str]]
"""Managed prefix to the names under it that stay; streams of other prefixes always stay."""


@attrs.frozen
class Collected:
    """
    What a pass removed, or would have with C{dry_run}.

    C{deferred} says why nothing was looked at, C{blobs_kept} why no payload was swept.
    """

    dry_run: bool = False
    deferred: str | None = None
    removed: tuple[str, ...] = ()
    """Tokens of streams."""
    records_removed: int = 0
    streams_kept: int = 0
    idem_docs_removed: int = 0
    leases_removed: int = 0
    locks_removed: int = 0
    tmp_removed: int = 0
    quarantine_removed: int = 0
    blobs_removed: int = 0
    blobs_kept: str | None = None


@measured("gc")
def collect(store: Store, own: Names, grace: float, *, dry_run: bool = False) -> Collected:
    """
    Run one pass; C{own} is what this node's configuration uses, C{grace} seconds.

    Raises OSError if what is in use cannot be found out.
    """
    now = store.tree.clock.now()
    try:
        manifests = [
            record
            for token in store.stream_tokens("manifests/")
            for record in store.records.read_token(token, MANIFEST_KEEP, strict=True)
        ]
    except Unreadable as error:
        return Collected(dry_run, deferred=NEWER_AT_WORK % os.path.basename(error.path))
    if not history_spans(manifests, now, grace):
        return Collected(dry_run, deferred=DEFERRED)
    foreign = Sweeps(store.tree, now - grace).newer_scheme_at_work()
    if foreign is not None:
        return Collected(dry_run, deferred=NEWER_AT_WORK % foreign)
    keep = what_to_keep(store, in_use(manifests, own, now, grace), now)
    return sweep(store, keep, now - grace, dry_run)


def what_to_keep(store: Store, used: InUse, now: float) -> Keep:
    """Return the managed prefixes and what stays under each."""
    keep: dict[str, frozenset[str]] = dict.fromkeys(OF_JOBS, used.names.jobs)
    keep.update(dict.fromkeys(OF_HOSTS, used.names.hosts))
    keep["paused/"] = used.names.jobs | _with_live_pause(store, now)
    xcom = _xcom_scopes(store) if used.covers_scopes else None
    if xcom is not None:
        keep["artifacts/"] = used.names.scopes | used.names.jobs | xcom
        keep["catchup-dag/"] = used.names.dags
    return keep


def sweep(store: Store, keep: Keep, before: float, dry_run: bool = False) -> Collected:
    """Remove what is not kept and was last written before C{before} (epoch seconds)."""
    tokens = store.stream_tokens()
    proofs = dict.fromkeys(store.stream_tokens("manifests/"))
    others = [token for token in tokens if token not in proofs]
    removed = _collect_streams(store, others, keep, before, dry_run)
    sweeps = Sweeps(store.tree, before, dry_run)
    idem = sweeps.expired_claims()
    leases = sweeps.finished_leases()
    locks = sweeps.orphaned_locks()
    quarantined = sweeps.quarantine()
    temporary = sweeps.temporary()
    blobs = 0
    why: str | None = None
    try:
        blobs = _sweep_blobs(store, sweeps, frozenset(removed))
    except TROUBLE as error:
        why = str(error)
    # What proves that the rest is nobody's goes last, so that a pass that was cut can be repeated.
    removed |= _collect_streams(store, proofs, keep, before, dry_run)
    return Collected(
        dry_run=dry_run,
        removed=tuple(sorted(removed)),
        records_removed=sum(removed.values()),
        streams_kept=len(tokens) - len(removed),
        idem_docs_removed=idem,
        leases_removed=leases,
        locks_removed=locks,
        tmp_removed=temporary,
        quarantine_removed=quarantined,
        blobs_removed=blobs,
        blobs_kept=why,
    )


def _collect_streams(
    store: Store, tokens: Iterable[str], keep: Keep, before: float, dry_run: bool
) -> dict[str, int]:
    """Remove streams that are nobody's and old; return how many records each had, by token."""
    gone = {token: _collect_stream(store, token, keep, before, dry_run) for token in tokens}
    return {token: records for token, records in gone.items() if records is not None}


def _collect_stream(
    store: Store, token: str, keep: Keep, before: float, dry_run: bool
) -> int | None:
    """Remove a stream that is nobody's and old; return its records, None if it stays."""
    prefix = next((p for p in keep if token.startswith(names.fragment(p))), None)
    name = None if prefix is None else store.stream_name(token)
    if prefix is None or name is None or not name.startswith(prefix):
        return None
    if name[len(prefix) :] in keep[prefix]:
        return None
    try:
        files = store.records.files(token)
        if not _is_old(store, token, files, before):
            return None
        return len(files) if dry_run else _remove_stream(store, token, files)
    except OSError as error:
        log.warning("state: could not collect %s: %s", token, error)
        return None


def _is_old(store: Store, token: str, files: list[str], before: float) -> bool:
    if not files:
        return store.tree.files.status(store.tree.path("records", token)).modified < before
    written = [stems.written_at(file) for file in files]
    return all(epoch is not None and epoch < before for epoch in written)


def _remove_stream(store: Store, token: str, files: list[str]) -> int:
    directory = store.tree.path("records", token)
    removed = 0
    for file in files:
        try:
            store.tree.files.unlink(f"{directory}/{file}")
            removed += 1
        except FileNotFoundError:
            continue
        store.tree.at("gc.record")
    try:
        # A record that came meanwhile keeps the directory, and its name beside it.
        if not store.records.files(token):
            if SIDECAR in store.tree.files.names(directory):
                store.tree.files.unlink(f"{directory}/{SIDECAR}")
            store.tree.files.remove_directory(directory)
    except OSError as error:
        log.info("state: left the directory of %s: %s", token, error)
    store.tree.at("gc.stream")
    return removed


def _with_live_pause(store: Store, now: float) -> frozenset[str]:
    """Return the jobs whose pause still lasts, or cannot be read."""
    live = set()
    for stream in store.streams("paused/").names:
        try:
            newest = store.records.latest(stream, strict=True)
        except TROUBLE:
            live.add(stream.partition("/")[2])
            continue
        if newest is not None and newest.get("kind") == "paused" and _lasts(newest, now):
            live.add(stream.partition("/")[2])
    return frozenset(live)


def _lasts(pause: Mapping[str, Any], now: float) -> bool:
    until = from_text(pause.get("until"))
    return until is None or until > now


def _xcom_scopes(store: Store) -> frozenset[str] | None:
    """Return the artifact scopes of the workflow runs there are, None if that cannot be told."""
    scopes = set()
    try:
        dags = store.documents.namespaces("dagrun/")
        if not dags.complete:
            return None
        for namespace in dags.names:
            for entry in store.documents.entries(namespace):
                run = entry.body.get("runId")
                if not isinstance(run, str):
                    return None
                scopes.add(f"dagxcom/{namespace.partition('/')[2]}/{run}")
    except TROUBLE as error:
        log.warning("state: artifacts are not collected this time: %s", error)
        return None
    return frozenset(scopes)


@measured("blob-sweep")
def _sweep_blobs(store: Store, sweeps: Sweeps, removed: frozenset[str]) -> int:
    """
    Remove old payloads that no artifact record names; return how many.

    A dry run counts as if the streams C{removed} had gone.  Raises OSError or L{Unreadable} if
    what is named cannot be told.
    """
    named = set()
    for token in store.stream_tokens(artifacts("")):
        if token in removed and sweeps.dry_run:
            continue
        if store.stream_name(token) is None:
            raise OSError(f"the artifact stream {token} has no name")
        for record in store.records.read_token(token, strict=True):
            named.add(record.get("sha256"))
    return sweeps.blobs({digest for digest in named if isinstance(digest, str)})
