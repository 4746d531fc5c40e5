"""Values from the environment: where they are put in, and where they never are."""

from __future__ import annotations

from cronstable.config.values import Secret
from tests.config.helpers import STATE, ConfigCase, job, section, task


class FormTests(ConfigCase):
    """Tests for the forms."""

    environ = {"V": "value", "EMPTY": "", "NESTED": "${V}", "_x1": "low"}

    def value(self, written: str) -> str:
        """Return what a stream prefix comes to, quoted as it is."""
        return self.job(f"streamPrefix: '{written}'").stream_prefix

    def test_forms(self) -> None:
        """Set, unset and empty variables, defaults, dollars, and what is left alone."""
        for written, value in (
            ("${V}", "value"),
            ("a${V}b${_x1}c", "avalueblowc"),
            ("${EMPTY}", ""),
            ("${V:-d}", "value"),
            ("${NONE:-d}", "d"),
            ("${EMPTY:-d}", "d"),
            ("${NONE:-}", ""),
            ("${NONE:-a b:-c}", "a b:-c"),
            ("${NONE:-${V}}", "${V}"),
            ("$$", "$"),
            ("$${V}", "${V}"),
            ("$$$V", "$$V"),
            ("${NESTED}", "${V}"),
            ("$V", "$V"),
            ("$", "$"),
            ("${", "${"),
            ("${V", "${V"),
            ("${}", "${}"),
            ("${1}", "${1}"),
            ("${V:?x}", "${V:?x}"),
            ("${V-d}", "${V-d}"),
            ("${\u00e9}", "${\u00e9}"),
        ):
            self.assertEqual(self.value(written), value, written)

    def test_unset(self) -> None:
        """A missing variable is told with file, path and name, and how to do without."""
        self.assert_refused(
            job("timezone: ${TZX}"),
            "c.yaml:5:15: job 'a': jobs[0].timezone: the environment variable TZX is not set",
            "${TZX:-default}",
        )

    def test_unset_where_unused(self) -> None:
        """It counts in disabled jobs and in defaults that nobody uses."""
        self.assert_refused(job("streamPrefix: ${NONE}", "enabled: no"), "NONE")
        self.assert_refused("defaults:\n  streamPrefix: ${NONE}\n", "defaults.streamPrefix", "NONE")


class PlaceTests(ConfigCase):
    """Tests for where forms count."""

    environ = {"V": "value", "Z": "Asia/Tokyo", "M": "*/5", "P": "5"}

    def test_text_values(self) -> None:
        """They count in text of every section."""
        found = self.config(
            job(
                "timezone: ${Z}",
                "environment: [{key: '${V}', value: 'x${V}'}]",
                "onFailure: {report: {mail: {from: '${V}', to: b, password: {value: '${V}'}}}}",
                "resourceLimits: {processes: '${P}'}",
            )
            + section("state", "path: /${V}")
            + section("web", "listen: ['http://localhost:${P}']", "headers: {'X$$': '${V}'}")
            + section("notify", "report: {mail: {from: '${V}', to: b}}")
        )
        found_job = found.jobs["a"]
        self.assertEqual(found_job.timezone, "Asia/Tokyo")
        self.assertEqual(found_job.environment, (("value", "xvalue"),))
        self.assertEqual(found_job.on_failure.mail.sender, "value")
        self.assertEqual(found_job.on_failure.mail.password, Secret("value"))
        self.assertEqual(found_job.limits.processes, 5)
        assert found.state and found.web and found.notify
        self.assertEqual(found.state.path, "/value")
        self.assertEqual(found.web.listen, ("http://localhost:5",))
        self.assertEqual(found.web.headers, (("X$$", "value"),))
        self.assertEqual(found.notify.report.mail.sender, "value")

    def test_schedules(self) -> None:
        """They count in schedules."""
        found = self.config("jobs: [{name: '${V}', command: x, schedule: '${M} * * * *'}]")
        self.assertEqual(found.jobs["value"].schedule_text, "*/5 * * * *")

    def test_literal_text(self) -> None:
        """They never count in commands, shells, shell reports and verification commands."""
        text = "${V} $$"
        found = self.config(
            f"jobs: [{{name: a, command: '{text}', schedule: '@daily', shell: '{text}', "
            f"verify: {{command: ['{text}']}}, "
            f"onFailure: {{report: {{shell: {{command: '{text}', shell: '{text}'}}}}}}}}]"
        ).jobs["a"]
        shell = found.on_failure.shell
        assert found.verify is not None
        self.assertEqual(
            [found.command, found.shell, found.verify.command, shell.command, shell.shell],
            [text, text, (text,), text, text],
        )
        of_task = self.config(task("shell: ${V}")).dags["d"].tasks[0].job
        self.assertEqual(of_task.shell, "${V}")

    def test_literal_sections(self) -> None:
        """They never count in C{logging} and in names of pools."""
        found = self.config(
            section("logging", "version: 1", "formatters: {f: {format: '$$ ${V}'}}")
            + STATE
            + section("pools", "'${V}': {slots: 1}")
        )
        assert found.logging is not None
        self.assertEqual(found.logging["formatters"], {"f": {"format": "$$ ${V}"}})
        self.assertEqual(list(found.pools), ["${V}"])

    def test_typed_values(self) -> None:
        """Numbers, booleans and words of an enumeration are typed first."""
        for line in ("saveLimit: ${P}", "captureStdout: ${V:-yes}", "priority: ${V:-idle}"):
            key = line.split(":")[0]
            self.assert_refused(job(line), f"job 'a': {key}: ")

    def test_crontabs(self) -> None:
        """They never count in a crontab."""
        self.write("c.crontab", "A=${V}\n* * * * * echo ${V} $$\n")
        found = self.load_path("c.crontab").config.jobs["c.crontab:2"]
        self.assertEqual(found.command, "echo ${V} $$")
        self.assertEqual(found.environment, (("A", "${V}"),))
