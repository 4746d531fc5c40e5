"""Lines that worked in crontab; docs/schedules.md, "Classic crontab files".  Failed starts."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import written

TAB = """\
# a comment
MAILTO=
@reboot date "+\\%H:\\%M" > hm
PATH=$HOME/bin:/usr/bin:/bin
A = "quoted  value"
@reboot printf '\\%s|\\%s|\\%s\\n' "$PATH" "$A" "$MAILTO" > env
CRON_TZ=America/New_York
0 3 1 1 * true
SHELL=/bin/dash
@reboot echo $0; pwd > pwd
SHELL=/no/such/shell
@reboot true
"""
BROKEN = {
    "gonedir": ("gone", "    command: pwd > elsewhere\n    workingDirectory: @WORK@/gone\n"),
    "goneshell": ("/no/such", "    command: 'true'\n    shell: /no/such\n"),
    "noprogram": ("no-such-program", "    command: [no-such-program]\n"),
    "noexec": ("noexec.sh", "    command: [@WORK@/noexec.sh]\n"),
    "dos": ("/bin/sh\\r", "    command: [@WORK@/dos.sh]\n"),
}
HEAD = """\
include:
  - tab.crontab
jobs:
  - name: a name with spaces
    schedule: "* * * * * * *"
    command: exec @WORK@/fine.sh
    captureStdout: true
  - name: shellnoprogram
    schedule: "@reboot"
    command: no-such-program
"""


class CannotStartTests(TestCase):
    """Crontab lines and jobs of which some cannot be started."""

    async def test_starts(self) -> None:
        """
        What cannot start fails with 127 and says what is missing; all others are as they were.

        Escaped percent signs are percent signs, a literal $HOME is warned about, SHELL and CRON_TZ
        hold for the lines below them.
        """
        work = self.place()
        jobs = (
            f'  - name: {name}\n    schedule: "@reboot"\n{keys}'
            for name, (_, keys) in BROKEN.items()
        )
        daemon = Daemon(self, HEAD + "".join(jobs), directory=work)
        for name, (missing, _) in {**BROKEN, "tab.crontab:12": ("/no/such/shell", "")}.items():
            end = await daemon.wait_for_end_of(name)
            self.assertEqual((end.code, end.well), (127, False), name)
            line = await daemon.wait_for_log(rf"^ERROR:cronstable:Job {name} could not start: (.*)")
            self.assertIn(missing, line.group(1))
        self.assertFalse(list(work.rglob("elsewhere")))
        self.assertEqual((await daemon.wait_for_end_of("shellnoprogram")).code, 127)
        self.assertNotIn("Job shellnoprogram could not start", daemon.log)
        self.assertRegex(await written(work / "hm"), r"^\d\d:\d\d\n$")
        self.assertEqual(await written(work / "env"), "$HOME/bin:/usr/bin:/bin|quoted  value|\n")
        self.assertEqual(await written(work / "pwd"), f"{daemon.directory}\n")
        await daemon.wait_for_log(r"^WARNING:.*tab\.crontab:4.*\$HOME")
        end = await daemon.wait_for_end_of("a name with spaces", count=2)
        self.assertTrue(end.well)
        self.assertIn("[a name with spaces stdout] fine", daemon.stdout)
        self.assertEqual(await daemon.stop(), 0)

    async def test_bare_percent(self) -> None:
        """A bare percent sign, which cron takes as input, is refused with its line."""
        daemon = Daemon(
            self, "# c\n* * * * * true\n* * * * * cat%hello%world\n", config_name="tab.crontab"
        )
        self.assertEqual(await daemon.wait_for_end(), 1)
        self.assertRegex(daemon.log, r"^ERROR:cronstable:Configuration error: .*tab\.crontab:3")

    def place(self) -> Path:
        """Return a directory with the crontab and scripts of all kinds."""
        work = Path(self.mktemp())
        work.mkdir()
        (work / "tab.crontab").write_text(TAB)
        scripts = (
            ("fine.sh", "#!/bin/sh\necho fine\n", 0o755),
            ("noexec.sh", "#!/bin/sh\necho no\n", 0o644),
            ("dos.sh", "#!/bin/sh\r\necho no\r\n", 0o755),
        )
        for name, text, mode in scripts:
            (work / name).write_bytes(text.encode())
            (work / name).chmod(mode)
        return work
