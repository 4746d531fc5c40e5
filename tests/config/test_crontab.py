"""What is taken as a crontab, and what its lines say."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.crontab import (
    Crontab,
    CrontabEntry,
    is_crontab_name,
    is_yaml_name,
    read_crontab,
    sniff,
)


def read(text: str, *accounts: str) -> Crontab:
    return read_crontab(text, "/etc/t.crontab", accounts.__contains__)


def entries(text: str) -> tuple[CrontabEntry, ...]:
    crontab = read(text)
    assert not crontab.problems, crontab.problems
    return crontab.entries


class NameTests(SynchronousTestCase):
    """Tests for what a file's name decides."""

    def test_crontabs(self) -> None:
        """C{crontab}, C{*.crontab} and C{*.cron} are crontabs in any letter case."""
        for name in ("crontab", "/etc/Crontab", "a.crontab", "a.CRON", "/x/my.Cron"):
            self.assertTrue(is_crontab_name(name), name)
        for name in ("crontab.bak", "mycrontab", "cron", "a.crontabs", "/crontab/a.txt"):
            self.assertFalse(is_crontab_name(name), name)

    def test_yaml(self) -> None:
        """C{*.yml} and C{*.yaml} are YAML in any letter case."""
        for name in ("a.yml", "a.YAML", "/x/y.Yml"):
            self.assertTrue(is_yaml_name(name), name)
        for name in ("yaml", "a.yaml~", "a.yml.bak", "a.cron"):
            self.assertFalse(is_yaml_name(name), name)


class SniffTests(SynchronousTestCase):
    """Tests for what the first live line of a text with a neutral name decides."""

    def test_crontab(self) -> None:
        """An assignment, a leading C{@}, or five valid fields and a command make a crontab."""
        for text in (
            "MAILTO=root\n",
            "\n# say\n  A = b\nnonsense",
            "@daily true",
            "@nonsense",
            "*/5 * * * * true",
            "H H(0-3) * * mon true\n",
            "\ufeff* * * * * true",
            "\r\n* * * * * true\r\n",
        ):
            self.assertTrue(sniff(text), text)

    def test_yaml(self) -> None:
        """Anything else is YAML, an empty text included."""
        for text in (
            "",
            "# only a comment\n",
            "jobs:\n  - name: a\n",
            "- a\n* * * * * true",
            "* * * * *",
            "99 * * * * true",
            "* * * *",
            "{}",
            "a-b=c",
        ):
            self.assertFalse(sniff(text), text)


class EntryTests(SynchronousTestCase):
    """Tests for the jobs of a crontab."""

    def test_fields_and_command(self) -> None:
        """Fields are joined by one blank; the command keeps its inner blanks and loses the ends."""
        self.assertEqual(
            entries("\t*/5  0-6\t* * mon   echo  a  b  \n"),
            (CrontabEntry(1, "t.crontab:1", "*/5 0-6 * * mon", "echo  a  b"),),
        )

    def test_name_counts_physical_lines(self) -> None:
        """A job is named after the file and its line, skipped lines counted."""
        text = "# one\n\n* * * * * a\n   \nX=1\n@reboot b"
        self.assertEqual([e.name for e in entries(text)], ["t.crontab:3", "t.crontab:6"])

    def test_nicknames(self) -> None:
        """A nickname stays as written, but for C{@midnight}, which is C{@daily}."""
        names = ("@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly")
        text = "".join(f"{name}\ttrue\n" for name in names) + "@midnight  true"
        self.assertEqual([e.schedule_text for e in entries(text)], [*names, "@daily"])
        self.assertEqual({e.command for e in entries(text)}, {"true"})

    def test_line_ends(self) -> None:
        """CRLF leaves no CR behind, and the last line needs no end."""
        found = entries("A=b\r\n* * * * * one\r\n* * * * * two")
        self.assertEqual([e.command for e in found], ["one", "two"])
        self.assertEqual(found[0].environment, (("A", "b"),))

    def test_byte_order_mark(self) -> None:
        """A leading byte order mark is not part of the first field."""
        self.assertEqual(entries("\ufeff* * * * * a")[0].schedule_text, "* * * * *")

    def test_percent(self) -> None:
        """An escaped percent sign is a percent sign."""
        self.assertEqual(entries(r"* * * * * date +\%H:\%M")[0].command, "date +%H:%M")

    def test_extended_dialect(self) -> None:
        """Hashed slots and the day forms are read as anywhere else, and shown as written."""
        self.assertEqual(entries("H H L * fri#1 a")[0].schedule_text, "H H L * fri#1")


class AssignmentTests(SynchronousTestCase):
    """Tests for C{NAME = value} lines."""

    def test_lines_below_only(self) -> None:
        """An assignment holds for the lines below it, and a later one replaces it."""
        found = entries("* * * * * a\nX=1\n* * * * * b\nY=2\nX=3\n* * * * * c\n")
        self.assertEqual(
            [e.environment for e in found], [(), (("X", "1"),), (("X", "3"), ("Y", "2"))]
        )

    def test_quotes(self) -> None:
        """One matching outer pair of quotes goes; inner blanks and other quotes stay."""
        cases = {
            'A = "quoted  value"': "quoted  value",
            "A='x y '": "x y ",
            "A = 'x\"": "'x\"",
            'A=""': "",
            "A='": "'",
            "A=": "",
            "A=''x''": "'x'",
            "A=b c # d": "b c # d",
        }
        for line, value in cases.items():
            self.assertEqual(entries(f"{line}\n@daily x")[0].environment, (("A", value),), line)

    def test_shell_and_zone(self) -> None:
        """C{SHELL} and C{CRON_TZ} are also the shell and the time zone, unless they are empty."""
        found = entries("SHELL=/bin/bash\nCRON_TZ=Europe/Paris\n@daily x\nSHELL=\n@daily y\n")
        self.assertEqual([e.shell for e in found], ["/bin/bash", None])
        self.assertEqual([e.timezone for e in found], ["Europe/Paris", "Europe/Paris"])
        self.assertEqual(found[1].environment, (("SHELL", ""), ("CRON_TZ", "Europe/Paris")))

    def test_tz_is_only_environment(self) -> None:
        """C{TZ} does not move the schedule."""
        self.assertIsNone(entries("TZ=Europe/Paris\n@daily x")[0].timezone)


class ProblemTests(SynchronousTestCase):
    """Tests for lines that are refused."""

    def problem(self, text: str) -> str:
        """Return the one problem of a text."""
        problems = read(text).problems
        self.assertEqual(len(problems), 1, problems)
        return str(problems[0])

    def test_place(self) -> None:
        """A problem names the file and the line, and the job and the key where there are any."""
        self.assertTrue(
            self.problem("# c\n\n99 * * * * true\n").startswith(
                "/etc/t.crontab:3: job 't.crontab:3': schedule: invalid schedule '99 * * * *': "
            )
        )

    def test_refused_lines(self) -> None:
        """What is no entry, nickname or assignment is refused with what is wrong."""
        for text, said in (
            ("* * * *", "'* * * *'"),
            ("* * * * *", "no command"),
            ("@daily", "no command"),
            ("@every 5m true", "'@every'"),
            ("@DAILY true", "'@DAILY'"),
            ("* * * * * cat%hello", "bare %"),
            ("* * * * * a\\%b%c", "bare %"),
            ("55-5 * * * * x", "55-5"),
            ("nonsense", "'nonsense'"),
            ("CRON_TZ=Mars/Base", "Mars/Base"),
            ("CRON_TZ=", "empty time zone"),
            ("5\u00a0* * * * * x", "invalid schedule"),
            ("\u0663 * * * * x", "invalid schedule"),
        ):
            self.assertIn(said, self.problem(text), text)

    def test_control_characters(self) -> None:
        """A control character other than a tab is refused in a live line, and only there."""
        for code in (0x00, 0x07, 0x0C, 0x1B, 0x7F, 0x85, 0x9F, 0x2028, 0x2029):
            self.assertIn(f"U+{code:04X}", self.problem(f"@daily a{chr(code)}b"))
            self.assertEqual(read(f"# a{chr(code)}b\n").problems, ())
        self.assertEqual(entries("@daily a\tb")[0].command, "a\tb")

    def test_carriage_return_inside(self) -> None:
        """Only one CR at the end of a line is part of its end."""
        self.assertIn("U+000D", self.problem("@daily a\rb"))

    def test_values_are_not_shown(self) -> None:
        """A refused line is shown without what follows an equals sign."""
        said = self.problem("MY-TOKEN=hunter2")
        self.assertIn("MY-TOKEN=...", said)
        self.assertNotIn("hunter2", said)

    def test_all_are_reported(self) -> None:
        """Every bad line is reported, up to a bound that says how many more there are."""
        self.assertEqual([p.line for p in read("x\n@daily a\ny\n").problems], [1, 3])
        many = read("x\n" * 50).problems
        self.assertEqual(len(many), 21)
        self.assertEqual(many[-1].message, "30 more lines are wrong")


class NoticeTests(SynchronousTestCase):
    """Tests for lines that cron would read otherwise."""

    def notices(self, text: str, *accounts: str) -> list[str]:
        """Return the notices of a text that has no problems."""
        crontab = read(text, *accounts)
        self.assertEqual(crontab.problems, ())
        return [str(notice) for notice in crontab.notices]

    def test_variables_stay_literal(self) -> None:
        """A variable in an assignment is named, with its line: it is not expanded."""
        (said,) = self.notices("PATH=$HOME/bin:/usr/bin\n@daily x")
        self.assertTrue(said.startswith("/etc/t.crontab:1: PATH: $HOME stays as it is"))
        (said,) = self.notices("BASE=/srv\nDATA=${BASE}/data\n")
        self.assertIn("t.crontab:2: DATA: ${BASE}", said)

    def test_secrets_are_not_quoted(self) -> None:
        """What merely looks like a variable inside a value is not shown."""
        self.assertEqual(self.notices("PASSWORD=pa$sword\n"), [])

    def test_user_column(self) -> None:
        """A command that begins with a user of this host looks like one with a user column."""
        (said,) = self.notices("@daily root rm -r /tmp/x", "root")
        self.assertIn("'root'", said)
        self.assertEqual(self.notices("@daily root", "root"), [])
        self.assertEqual(self.notices("@daily echo root", "root"), [])

    def test_user_column_of_this_host(self) -> None:
        """By default the host is asked; a program of that name is no user column."""
        notices = read_crontab("@daily root x\n@daily sh x\n@daily no-such x\n", "c").notices
        self.assertEqual([notice.line for notice in notices], [1])

    def test_sixth_field(self) -> None:
        """A sixth star becomes part of the command, which is told."""
        self.assertIn("sixth field", self.notices("0 0 * * * * x")[0])

    def test_escaped_backslash(self) -> None:
        """An escaped backslash before a percent sign is told: cron reads it otherwise."""
        self.assertIn(r"\\%", self.notices("@daily echo 50\\\\%")[0])
        self.assertEqual(self.notices("@daily echo 50\\%"), [])

    def test_mailto(self) -> None:
        """A MAILTO that would send mail is told once: it is only exported."""
        self.assertEqual(len(self.notices("MAILTO=root\nMAILTO=ops\n")), 1)
        self.assertEqual(self.notices('MAILTO=\nMAILTO=""\n'), [])
