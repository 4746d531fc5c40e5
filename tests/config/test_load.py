"""Files, directories, includes and crontabs: what a load takes, and how it is put together."""

from __future__ import annotations

import os
import subprocess
import sys

from cronstable.config.errors import ConfigError
from cronstable.config.load import load
from cronstable.config.values import JobConfig
from tests.config.helpers import HEAD, NOW, STATE, ConfigCase, job, section


def jobs(*names: str) -> str:
    """Return a C{jobs} section."""
    return "jobs:\n" + "".join(
        f"  - {{name: {name}, command: x, schedule: '@daily'}}\n" for name in names
    )


class FileTests(ConfigCase):
    """Tests for a path that is a file."""

    def test_kind_by_name(self) -> None:
        """The name decides what a file is, and where it does not, its first live line."""
        crontab, yaml = "* * * * * echo hi\n", HEAD
        for name in ("crontab", "CRONTAB", "x.cron", "x.crontab", "x.CRON", "neutral"):
            self.write(name, crontab)
            found = self.load_path(name).config.jobs
            self.assertEqual(list(found), [f"{name}:1"])
        for name in ("x.yml", "x.YAML", "neutral"):
            self.write(name, yaml)
            self.assertEqual(list(self.load_path(name).config.jobs), ["a"])

    def test_yaml_is_never_sniffed(self) -> None:
        """A YAML name means YAML, whatever the text looks like."""
        self.write("x.yaml", "* * * * * echo hi\n")
        self.assertRaises(ConfigError, self.load_path, "x.yaml")

    def test_empty(self) -> None:
        """Nothing at all is a configuration."""
        self.assertEqual(self.config("").jobs, {})
        self.assertEqual(self.load_path("/dev/null").config.jobs, {})

    def test_unreadable(self) -> None:
        """A path that cannot be read is told with the system's reason."""
        error: ConfigError = self.assertRaises(ConfigError, self.load_path, "none.yaml")
        self.assertEqual(str(error), "none.yaml: cannot be read: No such file or directory")
        error = self.assertRaises(ConfigError, self.load_path, "a\0b")
        self.assertIn("cannot be read", str(error))

    def test_order(self) -> None:
        """Jobs come in the order in which they are written."""
        names = [f"j{number}" for number in (3, 1, 2)]
        self.assertEqual(list(self.config(jobs(*names)).jobs), names)

    def test_equal_loads(self) -> None:
        """Two loads of the same text give equal configurations."""
        text = HEAD + STATE + section("web", "listen: ['http://localhost:1']")
        self.assertEqual(self.config(text), self.config(text))

    def test_ten_thousand_jobs(self) -> None:
        """A large file loads, in order, its equal parts shared."""
        text = "jobs:\n" + "".join(
            f"  - name: job-{n}\n    command: echo {n}\n    captureStderr: true\n"
            f'    schedule: "{n % 60} {n // 60 % 24} * * *"\n'
            for n in range(10_000)
        )
        found = list(self.config(text).jobs.values())
        self.assertEqual(len(found), 10_000)
        self.assertEqual(found[9_999].name, "job-9999")
        self.assertEqual(len({id(each.schedule) for each in found}), 1440)
        self.assertEqual(len({id(each.on_failure) for each in found}), 1)

    def test_ten_thousand_problems(self) -> None:
        """As many problems are told as there are."""
        self.assertEqual(len(self.problems(jobs(*["x"] * 3000))), 2999)

    def test_job_set_id(self) -> None:
        """A load knows the fingerprint of its jobs."""
        self.assertEqual(self.load("").job_set_id[:3], "v1:")
        self.assertEqual(self.load(HEAD).job_set_id, self.load(HEAD + STATE).job_set_id)

    def test_default_directory(self) -> None:
        """Without a directory given, paths are relative to the process's own."""
        self.write("c.yaml", job("workingDirectory: x"))
        path = os.path.relpath(self.path("c.yaml"))
        found = load(path, environ={}, now=NOW).config.jobs["a"]
        self.assertEqual(found.working_directory, os.path.abspath("x"))

    def test_imports(self) -> None:
        """Loading needs neither Twisted nor a template engine."""
        program = (
            "import sys, cronstable.config.load as m; m.load('/dev/null', environ={}, now=0); "
            "print([n for n in ('twisted', 'jinja2', 'klein', 'zope') if n in sys.modules])"
        )
        found = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.assertEqual(found.stdout, "[]\n", found.stderr)


class CrontabTests(ConfigCase):
    """Tests for jobs that come from a classic crontab."""

    def test_job(self) -> None:
        """A line is a job with the built-in settings and the variables above it."""
        self.write("my.crontab", "A=1\r\n*/5 * * * * echo $A\r\nSHELL=/bin/bash\n@reboot x")
        found = self.load_path("my.crontab").config.jobs
        first, second = found["my.crontab:2"], found["my.crontab:4"]
        expected = JobConfig(
            "my.crontab:2", "echo $A", "*/5 * * * *", first.schedule, environment=(("A", "1"),)
        )
        self.assertEqual(first, expected)
        self.assertEqual((second.shell, second.reboot), ("/bin/bash", True))
        self.assertEqual((second.origin.file, second.origin.line), ("my.crontab", 4))

    def test_zone(self) -> None:
        """C{CRON_TZ} is the zone of the lines below it."""
        self.write("crontab", "CRON_TZ=Asia/Tokyo\n@midnight x\n")
        found = self.load_path("crontab").config.jobs["crontab:2"]
        self.assertEqual((found.timezone, found.schedule_text), ("Asia/Tokyo", "@daily"))

    def test_bad_line(self) -> None:
        """A line that is none is told by file and line."""
        self.write("crontab", "* * * * * x\n99 * * * * x\n* * * * * a%b")
        error: ConfigError = self.assertRaises(ConfigError, self.load_path, "crontab")
        self.assertEqual([each.line for each in error.problems], [2, 3])
        self.assertTrue(str(error).startswith("crontab:2"))

    def test_no_defaults(self) -> None:
        """No file's defaults reach a crontab that it includes."""
        self.write("my.crontab", "* * * * * x\n")
        text = "defaults: {saveLimit: 1}\ninclude: [my.crontab]\n"
        self.assertEqual(self.config(text).jobs["my.crontab:1"].save_limit, 4096)


class DirectoryTests(ConfigCase):
    """Tests for a path that is a directory."""

    def load_all(self) -> list[str]:
        """Return the names of all jobs of the directory."""
        return list(self.load_path(".").config.jobs)

    def refused(self, *parts: str) -> None:
        """Assert that the directory is refused with C{parts} in the text."""
        error: ConfigError = self.assertRaises(ConfigError, self.load_path, ".")
        for part in parts:
            self.assertIn(part, str(error))

    def test_taken(self) -> None:
        """YAML and crontabs are taken in the order of their names, nothing else is."""
        for name in ("b.yaml", "a.yml", "C.YAML", "_x.yaml", ".x.yaml", "x.txt", "sniffed"):
            self.write(name, jobs(name.lower().strip(".")))
        self.write("z.crontab", "* * * * * x\n")
        self.assertEqual(self.load_all(), ["c.yaml", "a.yml", "b.yaml", "z.crontab:1"])

    def test_empty(self) -> None:
        """An empty directory is a configuration."""
        self.assertEqual(self.load_all(), [])

    def test_not_a_file(self) -> None:
        """A directory or a dangling link under a name that is taken is refused."""
        self.make_directory("x.yaml")
        self.refused("x.yaml: cannot be read: Is a directory")
        os.rmdir(self.path("x.yaml"))
        os.symlink("nowhere", self.path("x.yaml"))
        self.refused("x.yaml: cannot be read: No such file")

    def test_links(self) -> None:
        """A link to a file is followed."""
        self.write("real.txt", jobs("a"))
        os.symlink("real.txt", self.path("x.yaml"))
        self.assertEqual(self.load_all(), ["a"])

    def test_defaults_stay_home(self) -> None:
        """A file's defaults reach its own jobs only."""
        self.write("a.yaml", "defaults: {saveLimit: 1}\n" + jobs("a"))
        self.write("b.yaml", jobs("b"))
        found = self.load_path(".").config.jobs
        self.assertEqual([found["a"].save_limit, found["b"].save_limit], [1, 4096])

    def test_sections_from_several_files(self) -> None:
        """Sections may lie in different files, and are judged together."""
        self.write("a.yaml", job("secrets: [{name: x, value: abcd}]"))
        self.write("b.yaml", STATE + section("pools", "p: {slots: 1}"))
        self.write("c.yaml", section("pools", "q: {slots: 2}"))
        found = self.load_path(".").config
        self.assertEqual(list(found.pools), ["p", "q"])
        self.assertIsNot(found.state, None)

    def test_twice(self) -> None:
        """A job, pool, workflow or section in two files is told with both."""
        dag = "dags: [{name: d, tasks: [{id: t, command: x}]}]\n"
        content = HEAD + STATE + section("pools", "p: {slots: 1}") + dag
        self.write("a.yaml", content)
        self.write("b.yaml", content)
        first = os.path.join(".", "a.yaml")
        second = os.path.join(".", "b.yaml")
        self.refused(
            f"{second}:2: job 'a': name: given twice; first in {first}, line 2",
            f"{second}:5: state: given twice; first in {first}, line 5",
            f"{second}:8: pools.p: given twice; first in {first}, line 8",
            f"{second}:9: dag 'd': name: given twice; first in {first}, line 9",
        )

    def test_all_files_are_told(self) -> None:
        """What is wrong in each file is told, the files apart from each other."""
        self.write("a.yaml", job("bogus: 1"))
        self.write("b.yaml", "jobs: [\n")
        error: ConfigError = self.assertRaises(ConfigError, self.load_path, ".")
        lines = str(error).split("\n")
        self.assertEqual(len(lines), 3)
        self.assertIn("a.yaml:5:5: job 'a': bogus", lines[0])
        self.assertEqual(lines[1], "---")
        self.assertIn("b.yaml:2:1: not valid YAML", lines[2])


class IncludeTests(ConfigCase):
    """Tests for C{include}."""

    def test_beside_the_file(self) -> None:
        """Targets are relative to the file that includes them, and may be crontabs."""
        self.make_directory("sub")
        self.write("c.yaml", "include: [sub/one.yaml]\n" + jobs("a"))
        self.write("sub/one.yaml", "include: [two.yaml, x.crontab]\n" + jobs("b"))
        self.write("sub/two.yaml", jobs("c"))
        self.write("sub/x.crontab", "* * * * * x\n")
        found = self.load_path("c.yaml")
        self.assertEqual(list(found.config.jobs), ["c", "x.crontab:1", "b", "a"])
        names = {os.path.relpath(each.path, self.directory) for each in found.sources}
        self.assertEqual(names, {"c.yaml", "sub/one.yaml", "sub/two.yaml", "sub/x.crontab"})

    def test_interpolated(self) -> None:
        """The environment may say which file it is."""
        self.environ = {"SITE": "here"}
        self.write("here.yaml", jobs("b"))
        self.assertEqual(list(self.config("include: ['${SITE}.yaml']\n").jobs), ["b"])

    def test_finished(self) -> None:
        """Included jobs have their own file's defaults only."""
        self.write("i.yaml", "defaults: {saveLimit: 1}\n" + jobs("i"))
        self.write("j.yaml", jobs("j"))
        text = "include: [i.yaml, j.yaml]\ndefaults: {killTimeout: 5}\n" + jobs("a")
        found = self.config(text).jobs
        self.assertEqual([found[n].save_limit for n in "ija"], [1, 4096, 1])
        self.assertEqual([found[n].kill_timeout for n in "ija"], [30.0, 30.0, 5.0])

    def test_defaults_in_order(self) -> None:
        """Included defaults lie over each other in list order, under the file's own."""
        self.write("i.yaml", "defaults: {saveLimit: 1, maxLineLength: 1, killTimeout: 1}\n")
        self.write("j.yaml", "defaults: {maxLineLength: 2, killTimeout: 2}\n")
        text = "include: [i.yaml, j.yaml]\ndefaults: {killTimeout: 3}\n" + jobs("a")
        found = self.config(text).jobs["a"]
        self.assertEqual((found.save_limit, found.max_line_length, found.kill_timeout), (1, 2, 3.0))

    def test_inherited_problem(self) -> None:
        """A bad value of an included default is told where it was written."""
        self.write("i.yaml", "\ndefaults: {saveLimit: -1}\n")
        self.assert_refused("include: [i.yaml]\n" + jobs("a"), "i.yaml:2:23: job 'a': saveLimit")

    def test_sections(self) -> None:
        """A section in one included file is adopted, in two places it is refused."""
        self.write("i.yaml", STATE)
        self.assertIsNot(self.config("include: [i.yaml]\n").state, None)
        self.assert_refused(
            "include: [i.yaml]\n" + STATE, "c.yaml:2: state: given twice; first in i.yaml, line 1"
        )
        self.write("j.yaml", STATE)
        self.assert_refused("include: [i.yaml, j.yaml]\n", "j.yaml:1: state: given twice")

    def test_cycles(self) -> None:
        """A file that includes itself is told, however long the way."""
        self.assert_refused("include: [c.yaml]\n", "c.yaml:1:11: include[0]: 'c.yaml' includes")
        self.write("i.yaml", f"include: [../{os.path.basename(self.directory)}/c.yaml]\n")
        self.assert_refused("include: [i.yaml]\n", "i.yaml:1:11: include[0]: ")

    def test_diamonds(self) -> None:
        """Two ways to one file are legal as long as it defines nothing twice."""
        self.write("base.yaml", "defaults: {saveLimit: 1}\n")
        self.write("i.yaml", "include: [base.yaml]\n" + jobs("i"))
        self.write("j.yaml", "include: [base.yaml]\n" + jobs("j"))
        found = self.config("include: [i.yaml, j.yaml]\n").jobs
        self.assertEqual([each.save_limit for each in found.values()], [1, 1])
        self.write("base.yaml", jobs("x"))
        self.assert_refused(
            "include: [i.yaml, j.yaml]\n", "base.yaml:2: job 'x': name: given twice"
        )
        self.assert_refused("include: [base.yaml, base.yaml]\n", "job 'x': name: given twice")

    def test_bad_targets(self) -> None:
        """A target that is missing, a directory or nothing is told with the file and it."""
        self.assert_refused(
            "include: [none.yaml]\n",
            "c.yaml:1:11: include[0]: 'none.yaml' cannot be read: No such file or directory",
        )
        self.assert_refused("include: [.]\n", "include[0]: ", "is a directory")
        self.assert_refused("include: ['']\n", "include[0]: must name a file")
        self.assert_refused("include: x.yaml\n", "include: must be a list, got text")

    def test_bad_files(self) -> None:
        """What is wrong in an included file is told in its name, beside the rest."""
        self.write("i.yaml", job("bogus: 1"))
        problems = self.problems("include: [i.yaml]\nzzz: 1\n" + job("saveLimit: x"))
        self.assertEqual(
            [(each.file, each.key) for each in problems],
            [("i.yaml", "bogus"), ("c.yaml", "zzz"), ("c.yaml", "saveLimit")],
        )
