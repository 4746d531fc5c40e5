"""Where the log goes."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.logs import LoggingSection, MirroredHandler, mirror_the_log


class FakeMirror:
    """Takes lines until it is full."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.full = False
        self.resume: list[object] = []

    def write(self, target: int, block: bytes) -> bool:
        self.written.append((target, block))
        return not self.full

    def when_room(self, target: int, resume: object) -> None:
        self.resume.append(resume)


class MirroredHandlerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.mirror = FakeMirror()
        self.handler = MirroredHandler(self.mirror)  # type: ignore[arg-type]
        self.log = logging.Logger("test")
        self.log.addHandler(self.handler)

    def test_writes_lines(self) -> None:
        """Each record is a line for stderr."""
        self.log.warning("a %s", "b")
        self.assertEqual(self.mirror.written, [(2, b"a b\n")])

    def test_full(self) -> None:
        """Lines that find no room are dropped and counted, and the count is logged."""
        self.mirror.full = True
        for number in range(5):
            self.log.warning("line %d", number)
        self.assertEqual(len(self.mirror.written), 1)
        self.mirror.full = False
        with self.assertLogs("cronstable.config", "WARNING") as logged:
            self.mirror.resume[0]()  # type: ignore[operator]
        self.assertIn("4 lines", logged.output[0])
        self.log.warning("again")
        self.assertEqual(self.mirror.written[-1], (2, b"again\n"))

    def test_text_that_cannot_be_encoded(self) -> None:
        """A lone surrogate in a line costs nothing but its shape."""
        self.log.warning("\udce9")
        self.assertEqual(self.mirror.written, [(2, b"\\udce9\n")])


class RootLoggerCase(SynchronousTestCase):
    def setUp(self) -> None:
        root = logging.getLogger()
        before, level = list(root.handlers), root.level

        def restore() -> None:
            root.handlers[:] = before
            root.setLevel(level)

        self.addCleanup(restore)
        root.handlers[:] = []
        self.root = root


class MirrorTheLogTests(RootLoggerCase):
    def test_there_and_back(self) -> None:
        """The handler of stderr gives way to the mirror and comes back."""
        handler = logging.StreamHandler(sys.stderr)
        other = logging.StreamHandler(io.StringIO())
        self.root.handlers[:] = [handler, other]
        end = mirror_the_log(FakeMirror())  # type: ignore[arg-type]
        self.assertNotIn(handler, self.root.handlers)
        self.assertIn(other, self.root.handlers)
        end()
        self.assertCountEqual(self.root.handlers, [handler, other])

    def test_under_twistd(self) -> None:
        """It still is the handler of stderr when something else stands in for sys.stderr."""
        handler = logging.StreamHandler(sys.__stderr__)
        self.root.addHandler(handler)
        self.patch(sys, "stderr", io.StringIO())
        end = mirror_the_log(FakeMirror())  # type: ignore[arg-type]
        self.assertNotIn(handler, self.root.handlers)
        end()
        self.assertIn(handler, self.root.handlers)


class LoggingSectionTests(RootLoggerCase):
    def test_applied_once(self) -> None:
        """A section is applied when it has changed, and only then."""
        section = {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"a": {"class": "logging.NullHandler"}},
            "root": {"level": "ERROR", "handlers": ["a"]},
        }
        logging_section = LoggingSection()
        logging_section.apply(section)
        self.assertEqual(self.root.level, logging.ERROR)
        self.root.setLevel(logging.DEBUG)
        logging_section.apply(dict(section))
        self.assertEqual(self.root.level, logging.DEBUG)

    def test_broken(self) -> None:
        """A broken section is one error, the old logging stays, and it is tried again."""
        kept = logging.StreamHandler(io.StringIO())
        self.root.handlers[:] = [kept]
        broken = {
            "version": 1,
            "handlers": {"x": {"class": "nope.Nope"}},
            "root": {"handlers": ["x"]},
        }
        logging_section = LoggingSection()
        with self.assertLogs("cronstable.config", "ERROR") as logged:
            for _ in range(2):
                self.assertFalse(logging_section.apply(broken))
        self.assertIn("dictionary schema", "".join(logged.output))
        self.assertEqual(len(logged.output), 1)
        self.assertEqual(self.root.handlers, [kept])

    def test_file_that_cannot_be_opened(self) -> None:
        """The error says which file and why; once it can be opened, it is."""
        directory = Path(self.mktemp())
        section = {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"f": {"class": "logging.FileHandler", "filename": f"{directory}/log"}},
            "root": {"handlers": ["f"]},
        }
        logging_section = LoggingSection()
        with self.assertLogs("cronstable.config", "ERROR") as logged:
            logging_section.apply(section)
        self.assertIn("No such file or directory", logged.output[0])
        self.assertIn(str(directory), logged.output[0])
        directory.mkdir()
        self.assertTrue(logging_section.apply(section))
        [handler] = self.root.handlers
        self.addCleanup(handler.close)
        self.assertTrue((directory / "log").exists())
