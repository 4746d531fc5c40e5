"""Variables from an C{env_file}."""

from __future__ import annotations

from tests.config.helpers import ConfigCase, job


class EnvFileTests(ConfigCase):
    """Tests for C{env_file}."""

    def environment(self, content: str | bytes, *lines: str) -> dict[str, str]:
        """Return the environment of a job whose C{env_file} has C{content}."""
        self.write("vars", content)
        return dict(self.job("env_file: vars", *lines).environment)

    def test_lines(self) -> None:
        """Blank lines and comments are skipped; the rest is split at the first C{=}."""
        content = "\ufeff# comment\n\n  A = b c  \nB=x=y\r\n#C=1\nD=\nE='q' # no comment\n"
        self.assertEqual(
            self.environment(content),
            {"A": "b c", "B": "x=y", "D": "", "E": "'q' # no comment"},
        )

    def test_precedence(self) -> None:
        """Configured variables win, those of defaults too; the path stays known."""
        found = self.environment("A=file\nB=file\n", "environment: [{key: A, value: own}]")
        self.assertEqual(found, {"A": "own", "B": "file"})
        self.write("vars", "A=file\nB=file\n")
        text = "defaults:\n  environment: [{key: A, value: default}]\n" + job("env_file: vars")
        found_job = self.config(text).jobs["a"]
        self.assertEqual(dict(found_job.environment), {"A": "default", "B": "file"})
        self.assertEqual(found_job.env_file, "vars")

    def test_literal(self) -> None:
        """Nothing in it is interpolated."""
        self.assertEqual(self.environment("A=${B} $$\n"), {"A": "${B} $$"})

    def test_relative_to_the_daemon(self) -> None:
        """The path is relative to the daemon's directory, not to the configuration's."""
        self.write("vars", "A=1\n")
        self.make_directory("conf")
        self.write("conf/c.yaml", job("env_file: vars"))
        found = self.load_path("conf/c.yaml").config.jobs["a"]
        self.assertEqual(found.environment, (("A", "1"),))

    def test_source(self) -> None:
        """It is one of the configuration's sources."""
        self.write("vars", "A=1\n")
        sources = self.load(job("env_file: vars")).sources
        self.assertEqual([each.path for each in sources], [self.path("c.yaml"), self.path("vars")])

    def test_missing(self) -> None:
        """A file that is not there, a directory and a blank path are refused."""
        self.assert_refused(
            job("env_file: none", "enabled: no"),
            "c.yaml:5:15: job 'a': env_file: 'none' cannot be read: No such file or directory",
        )
        self.assert_refused(job("env_file: ."), "'.' cannot be read: Is a directory")
        self.assert_refused(job("env_file:"), "job 'a': env_file: must name a file")

    def test_no_sign(self) -> None:
        """A line without C{=} is told by its number, its text never shown."""
        self.write("vars", "A=1\n\nhunter2\n")
        said = str(self.problem(job("env_file: vars")))
        self.assertIn("job 'a': env_file: 'vars', line 3: there is no '='", said)
        self.assertNotIn("hunter2", said)

    def test_bad_text(self) -> None:
        """Bytes that are no text, and names and values that cannot be passed, are refused."""
        for content, text in (
            (b"A=\xff\n", "not UTF-8"),
            (b"=x\n", "a variable without a name"),
            (b"A=x\0y\n", "the value of A holds a NUL"),
        ):
            self.write("vars", content)
            self.assert_refused(job("env_file: vars"), "job 'a': env_file: ", text)

    def test_many_jobs(self) -> None:
        """What is wrong with an inherited file is told once for all jobs."""
        jobs = "".join(f"  - {{name: j{n}, command: x, schedule: '@daily'}}\n" for n in range(9))
        self.assert_refused(
            f"defaults:\n  env_file: none\njobs:\n{jobs}", "c.yaml:2:13: job 'j0'", "6 more"
        )
