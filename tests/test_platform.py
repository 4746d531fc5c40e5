"""What differs between systems."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable import platform
from cronstable.platform import BootIdentity

PLACES = {
    "boot_id": "sys/kernel/random/boot_id",
    "uptime": "uptime",
    "stat1": "1/stat",
}


class BootIdentityTests(SynchronousTestCase):
    """Telling one boot from another."""

    def proc(self, **files: str) -> Path:
        root = Path(self.mktemp())
        for name, text in files.items():
            path = root / PLACES[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    def test_boot_id(self) -> None:
        """The kernel's id is exact, the time comes along."""
        found = platform.boot_identity(self.proc(boot_id="abc\n", uptime="100.0 50.0\n"))
        self.assertEqual(found.boot_id, "abc")
        self.assertLess(abs((found.boot_time or 0) - time.time() + 100), 5)
        self.assertTrue(found.same_boot("abc", None))
        self.assertFalse(found.same_boot("abd", found.boot_time))

    def test_uptime(self) -> None:
        """Without ids, boot times within a minute are of one boot."""
        found = platform.boot_identity(self.proc(uptime="100.0 50.0\n"))
        self.assertIsNone(found.boot_id)
        assert found.boot_time is not None
        self.assertTrue(found.same_boot("some-id", found.boot_time + 59))
        self.assertFalse(found.same_boot(None, found.boot_time + 61))

    def test_kernel(self) -> None:
        """Without an uptime the kernel's boot time serves."""
        found = platform.boot_identity(self.proc())
        self.assertIsNotNone(found.boot_time)

    def test_unknown(self) -> None:
        """An unknown boot is never the same."""
        unknown = BootIdentity()
        self.assertFalse(unknown.known)
        self.assertFalse(unknown.same_boot(None, None))
        self.assertFalse(unknown.same_boot("abc", 1.0))

    def test_container(self) -> None:
        """A container is known by the boot of its host and the start of its process 1."""
        proc = self.proc(stat1="1 (a ) b) S 0 " + " ".join(map(str, range(5, 53))))
        host = BootIdentity("abc", 5.0)
        self.assertEqual(platform.container_start(host, proc), BootIdentity("abc/22"))
        self.assertEqual(platform.container_start(BootIdentity(), proc), BootIdentity("/22"))
        self.assertFalse(platform.container_start(host, self.proc()).known)
        here = platform.container_start(platform.boot_identity())
        self.assertEqual(here, platform.container_start(platform.boot_identity()))

    def test_here(self) -> None:
        """Two looks at this boot agree."""
        first, second = platform.boot_identity(), platform.boot_identity()
        self.assertTrue(first.same_boot(second.boot_id, second.boot_time))


class ProcessTests(SynchronousTestCase):
    """What is known of processes."""

    def test_start_time(self) -> None:
        """The start of a process is known to a second or two; a missing one has none."""
        before = time.time()
        child = subprocess.Popen(["sleep", "30"])
        started = platform.process_start_time(child.pid)
        child.kill()
        child.wait()
        assert started is not None
        self.assertLess(abs(started - before), 2)
        self.assertIsNone(platform.process_start_time(child.pid))

    def test_defunct(self) -> None:
        """A process that has ended is none, also before its parent has asked for its status."""
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.assertIsNone(platform.process_start_time(child.pid))
        child.wait()

    def test_existence(self) -> None:
        """A process that may not be signalled exists too."""
        self.assertTrue(platform.process_exists(os.getpid()))
        self.assertTrue(platform.process_exists(1))
        self.assertFalse(platform.process_exists(2**22 + 1))

    def test_name(self) -> None:
        """The name of an ended process is known until it is reaped."""
        child = subprocess.Popen(["/bin/sh", "-c", "exit 0"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.assertEqual(platform.process_name(child.pid), "sh")
        child.wait()
        self.assertIsNone(platform.process_name(child.pid))


class EncodingTests(SynchronousTestCase):
    """What is handed to programs."""

    def test_arguments(self) -> None:
        """UTF-8 whatever the locale; undecoded bytes come back; NUL is refused."""
        self.assertEqual(platform.encode_argv(["\xe9", "\udcff"]), [b"\xc3\xa9", b"\xff"])
        with self.assertRaises(ValueError):
            platform.encode_argv(["ok", "a\0b"])
        with self.assertRaises(ValueError):
            platform.encode_argv(["\ud800"])

    def test_environment(self) -> None:
        """In an odd locale what it cannot express is UTF-8."""
        env = {"A": "\xe9", "B": "\u2603"}
        self.assertIs(platform.encode_env(env), env)
        self.patch(sys, "getfilesystemencoding", lambda: "iso-8859-1")
        self.patch(os, "fsencode", lambda text: text.encode("iso-8859-1", "surrogateescape"))
        self.assertEqual(platform.encode_env(env), {b"A": b"\xe9", b"B": "\u2603".encode()})


class DescriptorTests(SynchronousTestCase):
    """Descriptors and their limit."""

    def test_limit(self) -> None:
        """The soft limit becomes the hard one; what it was is remembered from the first time."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        self.patch(platform, "_lowered", [])
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] - 1, before[1]))
        given = platform.raise_descriptor_limit()
        self.assertEqual(given, platform.DescriptorLimit(before[1] - 1, before[1]))
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (before[1], before[1]))
        self.assertEqual(platform.raise_descriptor_limit(), given)

    def test_nothing_to_raise(self) -> None:
        """Where the soft limit is the hard one nothing is remembered."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        self.patch(platform, "_lowered", [])
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        self.assertIsNone(platform.raise_descriptor_limit())

    def test_prepared(self) -> None:
        """A process started with odd signals, descriptors and a closed stdin gets them right."""
        script = (
            "import os, signal, sys; from cronstable import platform;"
            "platform.prepare_to_spawn();"
            "sys.stdout.write(os.readlink('/proc/self/fd/0') + ' ');"
            "sys.stdout.write(str(os.get_inheritable(9)) + ' ');"
            "sys.stdout.write(str(signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN) + ' ');"
            "sys.stdout.write(str(len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))))"
        )
        said = subprocess.run(
            ["/bin/sh", "-c", "trap '' QUIT; exec 9</dev/null 0<&-; exec \"$@\"", "sh"]
            + [sys.executable, "-c", script],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}),
        )
        self.assertEqual(said.stdout.decode(), "/dev/null False False 0")
