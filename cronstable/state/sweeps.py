"""
The parts of garbage collection that need no configuration: what is old and left over.

Each removal that others might contradict is decided again under the lock of what is removed.

docs/store-format.md, "Garbage collection", specifies what goes when.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Callable, Iterator

import attrs

from cronstable.state import blobs, documents, leases, names
from cronstable.state.encoding import opened
from cronstable.state.errors import Foreign, Malformed
from cronstable.state.leases import lease_in
from cronstable.state.tree import Tree, directories_in, names_in

log = logging.getLogger("cronstable.state")

TEMPORARY_AGE = 86_400.0
"""Seconds after which a temp file belongs to a write that died."""

RUN_LEASES = "dagadvance/"
"""The only leases whose fences nothing remembers: one per workflow run, never reused."""

_DIGESTS = re.compile(rb"[0-9a-f]{64}")


@attrs.define(eq=False)
class Sweeps:
    """Removes, or only counts with C{dry_run}, what was last touched C{before} (epoch seconds)."""

    _tree: Tree
    _before: float
    dry_run: bool = False

    def expired_claims(self) -> int:
        """Idempotency claims that ran out that long ago; for good ones stay for good."""
        removed = 0
        for directory in self._namespaces(names.fragment("idem/")):
            for token in self._tokens(directory, documents.BODY):
                body = f"{directory}/{token}{documents.BODY}"
                lock = f"{directory}/{token}{documents.LOCK}"
                removed += self._locked(lock, self._claim_is_over, [body])
        return removed

    def finished_leases(self) -> int:
        """Leases of workflow runs that ended and were last written that long ago."""
        removed = 0
        directory = self._tree.path("leases")
        prefix = names.fragment(RUN_LEASES)
        for token in self._tokens(directory, leases.FILE):
            if token.startswith(prefix):
                file = f"{directory}/{token}{leases.FILE}"
                lock = f"{directory}/{token}{leases.LOCK}"
                removed += self._locked(lock, self._lease_is_over, [file, lock])
        return removed

    def orphaned_locks(self) -> int:
        """Lock files whose document or lease is gone."""
        removed = 0
        places = [(directory, documents.BODY) for directory in self._namespaces("")]
        for directory, sibling in [*places, (self._tree.path("leases"), leases.FILE)]:
            is_over = functools.partial(self._lock_is_orphan, sibling)
            for token in self._tokens(directory, documents.LOCK):
                lock = f"{directory}/{token}{documents.LOCK}"
                removed += self._locked(lock, is_over, [lock])
        return removed

    def quarantine(self) -> int:
        """Records that were set aside that long ago."""
        return self._old_files("quarantine", self._before)

    def temporary(self) -> int:
        """Temp files of writes that died."""
        return self._old_files("tmp", self._tree.clock.now() - TEMPORARY_AGE)

    def blobs(self, named: set[str]) -> int:
        """Payloads whose digest is not C{named}, nor found in a record that was set aside."""
        wanted = named | self._digests_set_aside()
        removed = 0
        area = self._tree.path("blobs")
        for shelf in sorted(directories_in(self._tree.files, area)):
            for token in self._tokens(f"{area}/{shelf}", blobs.SUFFIX):
                path = f"{area}/{shelf}/{token}{blobs.SUFFIX}"
                try:
                    if token not in wanted and self._is_old(path):
                        removed += self._remove([path])
                except OSError as error:
                    log.warning("state: could not collect %s: %s", path, error)
        return removed

    def _locked(self, lock: str, is_over: Callable[[str], bool], paths: list[str]) -> int:
        """Remove C{paths} if the first C{is_over}, asked without and then with the free lock."""
        try:
            if not is_over(paths[0]):
                return 0
            if self.dry_run:
                return 1
            with self._held(lock) as held:
                return self._remove(paths) if held and is_over(paths[0]) else 0
        except OSError as error:
            log.warning("state: could not collect %s: %s", paths[0], error)
            return 0

    @contextlib.contextmanager
    def _held(self, path: str) -> Iterator[bool]:
        lock = self._tree.try_lock(path)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def _remove(self, paths: list[str]) -> int:
        """Unlink files, the first of which counts; 0 if it had gone."""
        if self.dry_run:
            return 1
        removed = 0
        for path in paths:
            try:
                self._tree.files.unlink(path)
                removed += path == paths[0]
            except FileNotFoundError:
                continue
            self._tree.at("gc.removed")
        return removed

    def _claim_is_over(self, path: str) -> bool:
        try:
            expires = opened(self._tree.files.read(path)).get("expiresAt")
        except (FileNotFoundError, Malformed, Foreign):
            return False
        if isinstance(expires, bool) or not isinstance(expires, (int, float)):
            return False
        return expires < self._before

    def _lease_is_over(self, path: str) -> bool:
        if not self._is_old(path):
            return False
        try:
            return lease_in(self._tree.files.read(path)).expires_at < self._before
        except (FileNotFoundError, Malformed):
            return False

    def _lock_is_orphan(self, sibling: str, lock: str) -> bool:
        subject = lock[: -len(documents.LOCK)] + sibling
        return self._is_old(lock) and self._absent(subject)

    def _is_old(self, path: str) -> bool:
        try:
            return self._tree.files.status(path).modified < self._before
        except FileNotFoundError:
            return False

    def _absent(self, path: str) -> bool:
        try:
            self._tree.files.status(path)
        except FileNotFoundError:
            return True
        return False

    def _old_files(self, area: str, before: float) -> int:
        removed = 0
        for name in names_in(self._tree.files, self._tree.path(area)):
            path = self._tree.path(area, name)
            try:
                status = self._tree.files.status(path)
                if status.modified < before:
                    if not self.dry_run:
                        self._remove_entry(path, status.is_directory)
                    removed += 1
            except FileNotFoundError:
                continue
            except OSError as error:
                log.warning("state: could not collect %s: %s", path, error)
        return removed

    def _remove_entry(self, path: str, is_directory: bool) -> None:
        try:
            self._tree.files.unlink(path)  # A link to a directory is none.
        except (IsADirectoryError, PermissionError):
            if not is_directory:
                raise
            self._tree.files.remove_directory(path)

    def newer_scheme_at_work(self) -> str | None:
        """Return a record of another scheme that was set aside since, None if there is none."""
        for name in sorted(names_in(self._tree.files, self._tree.path("quarantine"))):
            path = self._tree.path("quarantine", name)
            try:
                if not self._is_old(path):
                    opened(self._tree.files.read(path))
            except Foreign:
                return name
            except (OSError, Malformed):
                continue
        return None

    def _digests_set_aside(self) -> set[str]:
        """Whatever looks like a digest in a record that was set aside: it may yet be put back."""
        found: set[str] = set()
        for name in names_in(self._tree.files, self._tree.path("quarantine")):
            path = self._tree.path("quarantine", name)
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                if self.dry_run and self._is_old(path):
                    continue  # It would have gone.
                raw = self._tree.files.read(path)
                found |= {digest.decode("ascii") for digest in _DIGESTS.findall(raw)}
        return found

    def _namespaces(self, prefix: str) -> list[str]:
        area = self._tree.path("docs")
        tokens = sorted(directories_in(self._tree.files, area))
        return [f"{area}/{token}" for token in tokens if token.startswith(prefix)]

    def _tokens(self, directory: str, suffix: str) -> list[str]:
        files = names_in(self._tree.files, directory)
        return sorted(file[: -len(suffix)] for file in files if file.endswith(suffix))
