"""Real processes by the local executor: how they start, what they find, how they end."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from pathlib import Path

from twisted.internet import reactor, task
from twisted.internet.defer import gatherResults
from zope.interface.verify import verifyObject

from cronstable import platform
from cronstable.executors import local
from cronstable.executors.interfaces import IExecutor, IObserver, Leftover
from cronstable.executors.local import LocalExecutor
from cronstable.executors.orphans import children
from cronstable.executors.spawn import Spawner
from tests.executors.support import (
    ENV,
    LaunchCase,
    Recorder,
    alive,
    descriptors,
    program,
    shell,
    until,
)


class EndingTests(LaunchCase):
    """How launches end."""

    def test_interfaces(self) -> None:
        """Executor and recorder are what the interfaces say."""
        verifyObject(IExecutor, self.executor)
        verifyObject(IObserver, Recorder())

    async def test_looks_into_the_system(self) -> None:
        """What may hang is on a daemon thread of its own, which no end of the process waits for."""

        def find(pid: int, inodes: frozenset[int]) -> tuple[Leftover, ...]:
            return (Leftover(pid, str(threading.current_thread().daemon)),)

        self.patch(local, "find_holders", find)
        found = await self.executor.holders(7, frozenset())
        self.assertEqual(found, (Leftover(7, "True"),))

    async def test_exit_status(self) -> None:
        """The exit status is told as it was, the order is started, output, exited, ended."""
        run = await self.run_to_end(shell("echo out; echo err >&2; exit 3"))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status, run.status), ("exited", 3, 3))
        self.assertEqual(run.data, {"stdout": b"out\n", "stderr": b"err\n"})
        self.assertEqual(run.calls[0], "started")
        self.assertEqual(run.calls[-1], "ended")
        self.assertEqual(run.calls.count("exited"), 1)
        self.assertEqual(len(self.executor), 0)

    async def test_signals(self) -> None:
        """Death by a signal is told apart from the exit status that shells make of it."""
        cases = {"kill -9 $$": -9, "kill -SEGV $$": -11, "kill -TERM $$": -15, "exit 137": 137}
        runs = [self.launch(shell(command)) for command in cases]
        ends = await gatherResults([run.over for run in runs])
        self.assertEqual([ended.status for ended in ends], list(cases.values()))
        self.assertEqual({ended.cause for ended in ends}, {"exited"})

    async def test_all_output(self) -> None:
        """Not a byte is lost of what a process wrote just before its end."""
        run = await self.run_to_end(shell("yes 0123456789abcde | head -c 3000000"))
        self.assertEqual(run.data["stdout"], b"0123456789abcde\n" * 187500)

    async def test_same_reference(self) -> None:
        """A second launch of a known reference does nothing."""
        run, other = self.launch(shell("echo once")), Recorder()
        self.executor.launch(run.ref, shell("echo twice"), {}, other)
        await run.over
        self.assertEqual((run.text(), other.calls), ("once\n", []))

    async def test_observer_fails(self) -> None:
        """An observer that raises is logged, and its launch is told to the end."""
        run = Recorder()
        run.on_output = lambda stream, data: 1 / 0
        with self.assertLogs("cronstable", "ERROR"):
            self.executor.launch("odd", shell("echo x"), {}, run)
            ended = await run.over
        self.assertEqual((ended.status, run.data["stdout"]), (0, b"x\n"))

    async def test_lost_status(self) -> None:
        """A status that something else took is told as lost, not guessed."""
        run = self.launch(shell("exec 1>&- 2>&-; read x; exit 4"))
        assert run.pid is not None
        os.waitpid(run.pid, 0)
        with self.assertLogs("cronstable", "ERROR"):
            ended = await run.over
        self.assertIsNone(ended.status)
        self.assertIn("lost", ended.reason or "")

    async def test_nothing_survives(self) -> None:
        """A thousand launches leave neither a descriptor nor a defunct process."""
        await self.run_to_end(shell("exit 0"))
        before = descriptors()
        others = set(children())
        for _ in range(5):
            runs = [self.launch(program("/bin/true", capture_stdout=True)) for _ in range(160)]
            runs += [self.launch(program("/no/such/program")) for _ in range(40)]
            await gatherResults([run.over for run in runs])
        self.assertEqual(descriptors() - before, set())
        self.assertEqual(set(children()) - others, set())

    async def test_many_at_once(self) -> None:
        """Many launches, ends and kills at once leave the reactor its turns."""
        turns: list[int] = []

        def look() -> None:
            turns.append(sum("started" in run.calls for run in runs))

        runs: list[Recorder] = []
        looking = task.LoopingCall(look)
        looking.start(0)
        runs += [self.launch(program("/bin/sleep", "30")) for _ in range(300)]
        await until(lambda: not self.executor.waiting, 20)
        for run in runs:
            self.cancel(run, 5)
        results = await gatherResults([run.over for run in runs])
        looking.stop()
        self.assertEqual({ended.status for ended in results}, {-15})
        self.assertLess(max(after - before for before, after in itertools.pairwise(turns)), 150)

    async def test_order(self) -> None:
        """Launches start in the order in which they were asked for."""
        started: list[str] = []
        runs = []
        for number in range(60):
            run = Recorder()
            run.started = lambda pid, number=number: started.append(str(number))  # type: ignore
            self.executor.launch(str(number), program("/bin/true"), {}, run)
            runs.append(run.over)
        await gatherResults(runs)
        self.assertEqual(started, [str(number) for number in range(60)])


class PolledEndingTests(EndingTests):
    """The same where the system has no pidfd."""

    def make_executor(self) -> LocalExecutor:
        return LocalExecutor(reactor, self.clock, spawner=Spawner(use_pidfd=False))


class SurroundingsTests(LaunchCase):
    """What a process finds when it starts."""

    async def test_session(self) -> None:
        """A process leads a session and a group of its own."""
        run = await self.run_to_end(shell("exec ps -o pid=,pgid=,sid= -p $$"))
        numbers = set(run.text().split())
        self.assertEqual(numbers, {str(run.pid)})

    async def test_descriptors(self) -> None:
        """Descriptors 0, 1, 2 and no more; 0 is /dev/null."""
        inherited = os.open("/dev/null", os.O_RDONLY)
        self.addCleanup(os.close, inherited)
        os.set_inheritable(inherited, True)
        self.executor = LocalExecutor(reactor, self.clock)
        run = await self.run_to_end(shell("exec ls -l /proc/$$/fd"))
        lines = [line.split()[8:] for line in run.text().splitlines()[1:]]
        targets = {fields[0]: fields[2] for fields in lines}
        # ls itself holds the directory that it lists.
        self.assertEqual(set(targets) - {"3"}, {"0", "1", "2"})
        self.assertTrue(targets["3"].startswith("/proc/"))
        self.assertEqual(targets["0"], "/dev/null")

    async def test_signals(self) -> None:
        """No signal is ignored or blocked, whatever the daemon does with it."""
        for number in (signal.SIGHUP, signal.SIGUSR1):
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_IGN))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        for fields in ({}, {"cwd": "/"}):
            self.executor = LocalExecutor(reactor, self.clock)
            run = await self.run_to_end(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status", **fields))
            self.assertEqual(set(run.text().split()[1::2]), {"0" * 16})

    async def test_environment(self) -> None:
        """The environment is the one of the spec, to the byte."""
        env = {**ENV, "ODD": "caf\xe9 \udcff", "EMPTY": ""}
        run = await self.run_to_end(program("/usr/bin/env", "-0", env=env, capture_stdout=True))
        found = dict(entry.split(b"=", 1) for entry in run.data["stdout"].split(b"\0") if entry)
        self.assertEqual(found, {os.fsencode(k): os.fsencode(v) for k, v in env.items()})

    async def test_arguments(self) -> None:
        """Arguments are UTF-8, and bytes that were not decoded come back."""
        run = await self.run_to_end(
            program("/usr/bin/printf", "%s", "h\xf6he \u2603 \udc80", capture_stdout=True)
        )
        self.assertEqual(run.data["stdout"], "höhe ☃ ".encode() + b"\x80")

    async def test_directory_and_umask(self) -> None:
        """Working directory and umask are given; a relative program is found from there."""
        directory = self.mktemp()
        os.mkdir(directory)
        script = Path(directory, "here")
        script.write_text("#!/bin/sh\npwd; umask\n")
        script.chmod(0o755)
        place = os.path.abspath(directory)
        for argv, env in (("./here", ENV), ("here", {"PATH": "/usr/bin:."})):
            run = await self.run_to_end(
                program(argv, env=env, cwd=place, umask=0o27, capture_stdout=True)
            )
            self.assertEqual(run.text(), f"{place}\n0027\n", run.result)

    async def test_path_of_the_job(self) -> None:
        """A bare name is looked up on the PATH of the job's environment."""
        directory = self.mktemp()
        os.mkdir(directory)
        script = Path(directory, "only-here")
        script.write_text("#!/bin/sh\necho $0\n")
        script.chmod(0o755)
        env = {"PATH": f"/bin:{os.path.abspath(directory)}"}
        run = await self.run_to_end(program("only-here", env=env, capture_stdout=True))
        self.assertEqual(run.text(), f"{script.absolute()}\n")

    async def test_niceness(self) -> None:
        """The nice value holds for the whole group; one that is refused changes nothing."""
        run = await self.run_to_end(shell("sleep 0.2; nice; (nice)", nice=10))
        self.assertEqual(run.text(), "10\n10\n")

    async def test_descriptor_limit(self) -> None:
        """A limit that the daemon raised for itself is not the job's."""
        import resource

        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        self.patch(platform, "_lowered", [])
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
        platform.raise_descriptor_limit()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (before[1], before[1]))
        run = await self.run_to_end(shell("ulimit -Sn; ulimit -Hn"))
        self.assertEqual(run.text(), f"400\n{before[1]}\n")
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (before[1], before[1]))
        # With more in use than a lowered limit would allow, it is set after the start.
        held = [os.dup(0) for _ in range(300)]
        run = await self.run_to_end(shell("sleep 0.1; ulimit -Sn"))
        for descriptor in held:
            os.close(descriptor)
        self.assertEqual(run.text(), "400\n")

    async def test_uncaptured(self) -> None:
        """A stream that is not captured is the daemon's own, and never holds the run."""
        run = await self.run_to_end(
            shell("readlink /proc/$$/fd/2 > /proc/$$/fd/1", capture_stderr=False)
        )
        self.assertEqual(run.text().strip(), os.readlink("/proc/self/fd/2"))
        marker = "31.4150"
        run = await self.run_to_end(
            shell(f"setsid -f sleep {marker}; exit 3", capture_stdout=False, capture_stderr=False)
        )
        self.assertEqual(run.status, 3)
        await until(lambda: alive("sleep", marker))
        for pid in alive("sleep", marker):
            os.kill(pid, signal.SIGKILL)


class NotStartedTests(LaunchCase):
    """What cannot start says why, and leaves nothing."""

    async def refused(self, *argv: str, **fields: object) -> str:
        # The reactor opens descriptors of its own when it first turns.
        await task.deferLater(reactor, 0)
        before = descriptors()
        run = await self.run_to_end(program(*argv, **fields))
        assert run.result is not None
        self.assertEqual((run.calls[-1], run.result.cause), ("ended", "not-started"))
        self.assertNotIn("started", run.calls)
        self.assertIsNone(run.result.status)
        # The first launch of an executor opens /dev/null for all that follow.
        left = {behind for _, behind in descriptors() - before}
        self.assertLessEqual(left, {"/dev/null"})
        return run.result.reason or ""

    def script(self, text: bytes, mode: int = 0o755) -> str:
        path = Path(self.mktemp()).absolute()
        path.write_bytes(text)
        path.chmod(mode)
        return str(path)

    async def test_program(self) -> None:
        """A missing program is named, with PATH or with its path."""
        self.assertEqual(
            await self.refused("/no/such/program"), "program not found: /no/such/program"
        )
        self.assertEqual(
            await self.refused("no-such-program"),
            "program not found: no-such-program is in no directory of PATH",
        )
        self.assertEqual(await self.refused("./x", cwd="/usr"), "program not found: /usr/./x")
        self.assertEqual(await self.refused(""), "the command is empty")

    async def test_not_a_program(self) -> None:
        """Directories, plain files, foreign texts and bad interpreters are told apart."""
        self.assertIn("is a directory", await self.refused("/etc"))
        plain = self.script(b"#!/bin/sh\n", 0o644)
        self.assertEqual(await self.refused(plain), f"{plain} is not executable")
        text = self.script(b"echo no shebang\n")
        self.assertIn("a script needs a #! line", await self.refused(text))
        windows = self.script(b"#!/bin/sh\r\necho x\r\n")
        reason = await self.refused(windows)
        self.assertIn("Windows line ends", reason)
        self.assertIn("/bin/sh\\r", reason)
        missing = self.script(b"#! /no/such/interpreter -x\n")
        self.assertIn("/no/such/interpreter does not exist", await self.refused(missing))
        self.assertIn("not found", await self.refused("/bin/sh/x"))

    async def test_directory(self) -> None:
        """A working directory that is not there, or none, is named."""
        self.assertEqual(
            await self.refused("/bin/true", cwd="/no/such/place"),
            "working directory /no/such/place does not exist",
        )
        self.assertEqual(
            await self.refused("/bin/true", cwd="/etc/passwd"),
            "working directory /etc/passwd is not a directory",
        )

    async def test_environment_too_large(self) -> None:
        """What does not fit names the largest variables and their sizes, never values."""
        fits = await self.run_to_end(
            shell('printf %s "$K" | wc -c', env={**ENV, "K": "x" * 131_069})
        )
        self.assertEqual(fits.text().strip(), "131069")
        reason = await self.refused("/bin/true", env={**ENV, "K": "x" * 131_070})
        self.assertIn("environment too large", reason)
        self.assertIn("K (131073 bytes)", reason)
        self.assertNotIn("xxx", reason)
        many = {f"V{number:02}": "y" * 100_000 for number in range(60)}
        reason = await self.refused("/bin/true", env={**ENV, **many})
        self.assertIn("the largest: V00 (100005 bytes), V01", reason)

    async def test_command_too_long(self) -> None:
        """A command that does not fit is not blamed on the environment."""
        reason = await self.refused("/bin/sh", "-c", ": " + "x" * 140_000)
        self.assertIn("argument 2 has 140002 bytes", reason)

    async def test_impossible_text(self) -> None:
        """NUL characters and broken text are refused with their place."""
        self.assertIn("NUL", await self.refused("/bin/echo", "a\0b"))
        self.assertIn("cannot be passed", await self.refused("/bin/echo", "\ud800"))
        self.assertIn("cannot be passed", await self.refused("/bin/true", env={**ENV, "A": "b\0c"}))
        self.assertIn("cannot be passed", await self.refused("/bin/true", env={"A=B": "x"}))
