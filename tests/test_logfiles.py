"""Log files that are moved, removed and cannot be opened."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.logfiles import LogFiles


class Collected(logging.Handler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class LogFilesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).resolve()
        self.directory.mkdir()
        self.path = self.directory / "daemon.log"
        self.log = logging.getLogger(f"{__name__}.{self.id()}")
        self.log.propagate = False
        self.stand_in = Collected()
        self.files = LogFiles(lambda: self.stand_in)
        self.handler = self.added("a")

    def added(self, mode: str) -> logging.FileHandler:
        handler = logging.FileHandler(self.path, mode, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(levelname)s:%(message)s"))
        for before in tuple(self.log.handlers):
            self.log.removeHandler(before)
        self.log.addHandler(handler)
        self.addCleanup(handler.close)
        self.addCleanup(self.log.removeHandler, handler)
        return handler

    def say(self, word: str) -> None:
        self.log.warning("%s", word)

    def moved(self) -> Path:
        return self.path.rename(self.directory / "daemon.log.1")

    def test_full(self) -> None:
        """Lines that a full disk does not take go elsewhere, with one line about it a minute."""
        self.files.guard()
        real = self.handler.stream

        class Full:
            def write(self, text: str) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            def flush(self) -> None:
                pass

        self.handler.stream = Full()  # type: ignore[assignment]
        for word in ("one", "two"):
            self.say(word)
        self.handler.stream = real
        self.say("three")
        self.assertEqual(
            self.stand_in.lines,
            [
                f"WARNING:cannot write to the log file {self.path}: [Errno 28] No space left on"
                " device; its lines go to stderr until it takes them",
                "WARNING:one",
                "WARNING:two",
            ],
        )
        self.assertEqual(self.path.read_text(), "WARNING:three\n")

    def test_mistakes(self) -> None:
        """A line that cannot be formed is told as Python tells it: it is a bug."""
        self.files.guard()
        self.files.guard()
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            self.log.warning("%d", "no number")
        self.assertIn("TypeError", told.getvalue())
        self.assertEqual(self.stand_in.lines, [])

    def test_moved_and_asked(self) -> None:
        """Lines go to the moved file until the file is opened anew, and none is lost."""
        self.say("one")
        old = self.moved()
        self.say("two")
        self.files.reopen()
        self.say("three")
        self.assertEqual(old.read_text(), "WARNING:one\nWARNING:two\n")
        self.assertEqual(self.path.read_text(), "WARNING:three\n")

    def test_found_out(self) -> None:
        """A file that was moved or removed is found out without being told."""
        old = self.moved()
        self.files.look()
        self.say("one")
        self.path.unlink()
        self.files.look()
        self.say("two")
        self.assertEqual(old.read_text(), "")
        self.assertEqual(self.path.read_text(), "WARNING:two\n")

    def test_untouched(self) -> None:
        """A file that is where it was stays open."""
        stream = self.handler.stream
        self.files.look()
        self.assertIs(self.handler.stream, stream)

    def test_cut(self) -> None:
        """A file that was copied and cut goes on from its new beginning, without a hole."""
        self.say("one")
        os.truncate(self.path, 0)
        self.files.look()
        self.say("two")
        self.assertEqual(self.path.read_text(), "WARNING:two\n")

    def test_never_cuts(self) -> None:
        """A file that is to be begun anew at a start is not when it is opened again."""
        self.added("w")
        self.say("one")
        self.files.reopen()
        self.say("two")
        self.assertEqual(self.path.read_text(), "WARNING:one\nWARNING:two\n")

    def test_cannot_be_opened(self) -> None:
        """Lines go elsewhere, after one warning, until the file can be opened."""
        old = self.moved()
        self.path.mkdir()
        with self.assertLogs("cronstable.config", "WARNING") as logged:
            for _ in range(3):
                self.files.look()
            self.files.reopen()
        self.assertEqual(len(logged.output), 1)
        self.assertIn(f"cannot open the log file {self.path}: ", logged.output[0])
        self.say("one")
        self.path.rmdir()
        self.files.look()
        self.say("two")
        self.assertEqual(self.stand_in.lines, ["WARNING:one"])
        self.assertEqual(self.path.read_text(), "WARNING:two\n")
        self.assertEqual(old.read_text(), "")
        self.assertEqual(self.log.handlers, [self.handler])

    def test_replaced_meanwhile(self) -> None:
        """A handler that another section has put there is left alone."""
        self.moved()
        self.path.mkdir()
        with self.assertLogs("cronstable.config", "WARNING"):
            self.files.look()
        other = logging.NullHandler()
        self.log.handlers[:] = [other]
        self.path.rmdir()
        self.files.look()
        self.assertEqual(self.log.handlers, [other])
        self.assertIsNone(self.handler.stream)

    def test_not_opened_yet(self) -> None:
        """A file that is opened with its first line is not opened before."""
        self.handler.close()
        self.path.unlink()
        self.files.reopen()
        self.assertFalse(self.path.exists())
