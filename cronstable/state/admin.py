"""
The C{cronstable state} actions on a store, without a daemon: what they do and what they say.

docs/cli.md specifies arguments, texts and exit codes.  Each function returns an L{Outcome};
OSError and L{cronstable.state.errors.Unreadable} are the caller's to report.
"""

from __future__ import annotations

import errno
import logging
import os
import stat

import attrs

from cronstable.platform import is_root
from cronstable.state import archive, inventory, schema
from cronstable.state.gc import DEFAULT_GRACE, Collected, collect
from cronstable.state.manifests import Names
from cronstable.state.store import Store, StoreSettings, View, open_store
from cronstable.state.tree import StoreClock

log = logging.getLogger("cronstable.state")

FULL = frozenset((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)))
"""What a full disk says, and one on which the user may have no more."""

STOP_FIRST = "stop every cronstable process that uses this store, then pass --force"


@attrs.frozen
class Outcome:
    """What an action prints (stdout, stderr) and its exit status."""

    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    status: int = 0


def refused(text: str) -> Outcome:
    """Return the outcome of an action that was not done, and why."""
    return Outcome(err=(f"state: {text}",), status=1)


def backup(settings: StoreSettings, output: str) -> Outcome:
    """Write the store into an archive; safe beside daemons that use it."""
    if not _is_there(settings.root):
        return refused(f"nothing to back up: {settings.root} does not exist")
    count = archive.write_archive(settings.root, output)
    return Outcome((f"state: backed up {count} file(s) from {settings.root} to {output}",))


def restore(settings: StoreSettings, source: str, force: bool, clock: StoreClock) -> Outcome:
    """
    Put the files of an archive into the store; with C{force} also beside what is there.

    Nothing is written unless the archive is whole.
    """
    if not force and archive.is_populated(settings.root):
        return refused(
            f"the destination store at {settings.root} is not empty; to merge this backup into"
            f" it, {STOP_FIRST}"
        )
    try:
        archive.verify_archive(source)
        warn_of_owner(settings.root)
        tree = open_store(attrs.evolve(settings, fsync="never"), clock).tree
        put = archive.put_files(tree, archive.archived_files(source), merge=force)
    except archive.BadArchive as error:
        return refused(str(error))
    lines = [f"state: restored {put.written} file(s) from {source} into {settings.root}"]
    if put.leases_kept:
        lines.append(f"state: kept {put.leases_kept} lease(s) that are newer than the archive's")
    if put.left_out:
        lines.append(f"state: left out {put.left_out} member(s) that are no part of a store")
    return Outcome(tuple(lines))


def migrate(
    settings: StoreSettings,
    destination: str,
    deployment_id: str | None,
    force: bool,
    clock: StoreClock,
) -> Outcome:
    """
    Copy the store to another path, another namespace, or both.

    C{deployment_id} None keeps the namespace; empty means the default one, as in a configuration.
    """
    if not destination.strip():
        return refused("the destination is blank")
    target = attrs.evolve(
        settings,
        path=os.path.abspath(os.path.expanduser(destination)),
        deployment_id=settings.deployment_id if deployment_id is None else deployment_id,
        fsync="never",
    )
    source_root, target_root = os.path.realpath(settings.root), os.path.realpath(target.root)
    if not _is_there(source_root):
        return refused(f"nothing to migrate: {settings.root} does not exist")
    if target_root == source_root or target_root.startswith(source_root + os.sep):
        return refused("the destination must be a store outside the source")
    if not force and archive.is_populated(target.root):
        return refused(
            f"the destination store at {target.root} is not empty; to overwrite it, {STOP_FIRST}"
        )
    warn_of_owner(target.root)
    tree = open_store(target, clock).tree
    put = archive.put_files(tree, iter(archive.stored_files(settings.root)), merge=force)
    lines = [f"state: migrated {put.written} file(s) from {settings.root} to {target.root}"]
    if put.leases_kept:
        lines.append(f"state: kept {put.leases_kept} lease(s) that are newer than the source's")
    lines.append(
        "state: point state.path at the new location (and deploymentId, if you changed it) to"
        " use it"
    )
    return Outcome(tuple(lines))


def gc(store: Store, own: Names, grace: float, dry_run: bool) -> Outcome:
    """
    Collect what nobody uses, once; C{own} is what the configuration uses.

    A C{grace} of 0 or less, by which daemons never collect, stands for the default.
    """
    notes: tuple[str, ...] = ()
    if grace <= 0:
        grace = DEFAULT_GRACE
        note = (
            "state: gcGraceSeconds is <= 0, so daemons never collect; this pass uses the default"
            f" grace of {grace:.0f} s"
        )
        notes = (note,)
    try:
        _start(store, may_lock=not dry_run)
    except OSError as error:
        if error.errno not in FULL:
            raise
        log.warning("state: %s; collecting garbage all the same, which may make room", error)
    return Outcome(tuple(_told(collect(store, own, grace, dry_run=dry_run))), notes)


def _told(result: Collected) -> list[str]:
    if result.deferred is not None:
        return [f"state: gc deferred: {result.deferred}"]
    removed = "would remove" if result.dry_run else "removed"
    summary = (
        f"state: gc {removed} {len(result.removed)} stream(s) ({result.records_removed} record(s)),"
        f" {result.tmp_removed} temp file(s), {result.quarantine_removed} quarantined record(s);"
        f" kept {result.streams_kept} stream(s)"
    )
    lines = [summary]
    if result.blobs_kept is None:
        lines.append(f"state: gc {removed} {result.blobs_removed} orphaned artifact blob(s)")
    else:
        lines.append(f"state: orphan-blob sweep skipped: {result.blobs_kept}")
    return lines + [f"  - {token}" for token in result.removed]


def check(store: Store) -> Outcome:
    """Start the store, which proves that it can be written, and tell what is in it."""
    view = _start(store)
    taken = inventory.take(store)
    lines = [
        f"state: store at {view.path} is writable",
        f"  backend: {view.backend}",
        f"  namespace: {view.namespace}",
        f"  topology: {view.topology}",
        f"  shared_locking: {view.shared_locking}",
        f"  streams: {taken.streams} ({taken.record_count} record(s))",
        *(f"    {prefix}: {group.count} record(s)" for prefix, group in taken.records.items()),
        f"  quarantined: {taken.quarantined} record(s)",
    ]
    if view.locks_refused is not None:
        lines.append(f"  locks refused: {view.locks_refused}")
    if not taken.complete:
        lines.append("  incomplete: some entries cannot be named or read")
    return Outcome(tuple(lines))


def migrate_schema(store: Store, dry_run: bool) -> Outcome:
    """Convert records of older schemes; exit status 1 if any could not be written."""
    _start(store)
    result = schema.migrate(store, dry_run=dry_run)
    converted = "would convert" if dry_run else "converted"
    line = (
        f"state: migrate-schema {converted} {result.converted} record(s); {result.current} current,"
        f" {result.unknown} unknown, {result.unreadable} unreadable, {result.failed} failed"
    )
    return Outcome((line,), status=1 if result.failed else 0)


def warn_of_owner(root: str) -> None:
    """Say so if root is about to make files that the user to whom the place belongs cannot read."""
    place = root
    while not os.path.exists(place):
        place = os.path.dirname(place)
    owner = os.stat(place).st_uid
    if owner and is_root():
        log.warning(
            "state: %s belongs to user id %d, who cannot read what root makes there: let it be"
            " made by that user, or give it to that user before cronstable starts",
            place,
            owner,
        )


def _start(store: Store, *, may_lock: bool = False) -> View:
    """Start a store; with C{may_lock} lock files may be made in one that is there."""
    root = store.settings.root
    if may_lock or not os.path.exists(root):
        warn_of_owner(root)
    return store.start()


def _is_there(root: str) -> bool:
    """Return whether there is a namespace directory; raises OSError if that cannot be told."""
    try:
        return stat.S_ISDIR(os.stat(root).st_mode)
    except FileNotFoundError:
        return False
