"""
Classic crontab files: which files are taken as one, and what their lines say.

docs/schedules.md, "Classic crontab files", specifies the dialect.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache

import attrs

from cronstable.config.errors import ConfigProblem
from cronstable.schedule import NICKNAMES, REBOOT, ScheduleError, parse, zone_named

_MIDNIGHT = "@midnight"
_NICKNAMES = (REBOOT, *NICKNAMES, _MIDNIGHT)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)", re.DOTALL)
_BLANKS = re.compile(r"[ \t]+")
_NICKNAME = re.compile(r"(@[^ \t]*)(?:[ \t]+(.+))?", re.DOTALL)
_ENTRY = re.compile(r"((?:[^ \t]+[ \t]+){4}[^ \t]+)(?:[ \t]+(.+))?", re.DOTALL)
_FORBIDDEN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_BARE_PERCENT = re.compile(r"(?<!\\)%")
_ESCAPED_TWICE = re.compile(r"(?<!\\)(?:\\\\)+%")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_COMMON_VARIABLES = frozenset({"HOME", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"})

_MOST_PROBLEMS = 20
_MOST_SHOWN = 80


@attrs.frozen
class CrontabEntry:
    """
    One job of a crontab.

    C{environment} holds the assignments in force; C{shell} and C{timezone} are what C{SHELL} and
    C{CRON_TZ} say, None where they say nothing.
    """

    line: int
    name: str
    schedule_text: str
    command: str
    environment: tuple[tuple[str, str], ...] = ()
    shell: str | None = None
    timezone: str | None = None


@attrs.frozen
class Crontab:
    """
    What a crontab says: its jobs, what is wrong with it, and what cron would read otherwise.

    C{notices} are shaped like problems, but nothing is wrong with the file.  What cron would make
    of the day fields is for the lint of schedules to say.
    """

    entries: tuple[CrontabEntry, ...]
    problems: tuple[ConfigProblem, ...]
    notices: tuple[ConfigProblem, ...]


def is_crontab_name(path: str) -> bool:
    """Return whether a file is a crontab by its name: C{crontab}, C{*.crontab}, C{*.cron}."""
    name = os.path.basename(path).lower()
    return name == "crontab" or name.endswith((".crontab", ".cron"))


def is_yaml_name(path: str) -> bool:
    """Return whether a file is YAML by its name."""
    return os.path.basename(path).lower().endswith((".yml", ".yaml"))


def sniff(text: str) -> bool:
    """
    Return whether a text that no name decides about is a crontab; its first live line tells.

    An assignment, a leading C{@}, or five valid fields and a command make it one.
    """
    for _, line in _live_lines(text):
        if line[0] == "@" or _ASSIGNMENT.fullmatch(line):
            return True
        entry = _ENTRY.fullmatch(line)
        return entry is not None and bool(entry[2]) and _schedule_problem(entry[1], "") is None
    return False


def read_crontab(text: str, path: str, is_account: Callable[[str], bool] | None = None) -> Crontab:
    """
    Read a crontab; C{path} names its jobs and its problems.

    C{is_account} says whether a word is a user of this host; by default the host is asked.
    """
    lines = _Lines(path, _is_account if is_account is None else is_account)
    for number, line in _live_lines(text):
        lines.add(number, line)
    return Crontab(tuple(lines.entries), lines.bounded_problems(), tuple(lines.notices))


class _Lines:
    """The lines of one crontab, read from the top, with the assignments in force."""

    def __init__(self, path: str, is_account: Callable[[str], bool]) -> None:
        self._path = path
        self._file_name = os.path.basename(path)
        self._is_account = lru_cache(maxsize=None)(is_account)
        self._values: dict[str, str] = {}
        self._environment: tuple[tuple[str, str], ...] = ()
        self.entries: list[CrontabEntry] = []
        self.problems: list[ConfigProblem] = []
        self.notices: list[ConfigProblem] = []

    def add(self, number: int, line: str) -> None:
        """Take one live line."""
        if forbidden := _FORBIDDEN.search(line):
            code = f"U+{ord(forbidden[0]):04X}"
            self._wrong(number, f"the control character {code} is not allowed; only tabs are")
        elif assignment := _ASSIGNMENT.fullmatch(line):
            self._assign(number, assignment[1], _unquoted(assignment[2]))
        elif nickname := _NICKNAME.fullmatch(line):
            self._nickname(number, nickname[1], nickname[2] or "")
        elif entry := _ENTRY.fullmatch(line):
            self._fields(number, _BLANKS.sub(" ", entry[1]), entry[2] or "")
        else:
            self._wrong(
                number,
                "expected five fields (minute hour day-of-month month day-of-week) and a command, "
                f"a nickname and a command, or NAME=value, got {_shown(line)!r}",
            )

    def bounded_problems(self) -> tuple[ConfigProblem, ...]:
        """Return the first problems, and how many more there are."""
        more = len(self.problems) - _MOST_PROBLEMS
        if more <= 0:
            return tuple(self.problems)
        kept = self.problems[:_MOST_PROBLEMS]
        last = ConfigProblem(self._path, 0, 0, "", "", f"{more} more lines are wrong")
        return (*kept, last)

    def _assign(self, number: int, name: str, value: str) -> None:
        if name == "CRON_TZ":
            try:
                zone_named(value)
            except ScheduleError as error:
                return self._wrong(number, f"{error}" if value else "empty time zone", key=name)
        if name == "MAILTO" and value and name not in self._values:
            self._notice(number, name, "only exported to the jobs: no mail is sent because of it")
        for unexpanded in sorted(self._unexpanded(value)):
            self._notice(number, name, f"{unexpanded} stays as it is: no variable is expanded here")
        self._values[name] = value
        self._environment = tuple(self._values.items())

    def _unexpanded(self, value: str) -> set[str]:
        known = _COMMON_VARIABLES.union(self._values)
        return {found[0] for found in _VARIABLE.finditer(value) if (found[1] or found[2]) in known}

    def _nickname(self, number: int, nickname: str, command: str) -> None:
        if nickname not in _NICKNAMES:
            allowed = ", ".join(_NICKNAMES)
            return self._wrong(
                number, f"unknown nickname {_shown(nickname)!r}; allowed: {allowed}", key="schedule"
            )
        self._entry(number, "@daily" if nickname == _MIDNIGHT else nickname, command)

    def _fields(self, number: int, schedule: str, command: str) -> None:
        problem = _schedule_problem(schedule, self._name(number))
        if problem is not None:
            return self._wrong(number, problem, key="schedule")
        self._entry(number, schedule, command)

    def _entry(self, number: int, schedule: str, command: str) -> None:
        if not command:
            return self._wrong(number, f"{schedule!r} has no command", key="command")
        if _BARE_PERCENT.search(command):
            return self._wrong(
                number,
                "a bare % is not supported, where cron would feed the rest of the line to the "
                r"command; write \% for a percent sign, or make it a YAML job",
                key="command",
            )
        self._hints(number, command)
        self.entries.append(
            CrontabEntry(
                number,
                self._name(number),
                schedule,
                command.replace(r"\%", "%"),
                self._environment,
                self._values.get("SHELL") or None,
                self._values.get("CRON_TZ") or None,
            )
        )

    def _hints(self, number: int, command: str) -> None:
        if _ESCAPED_TWICE.search(command):
            self._notice(
                number,
                "command",
                r"'\\%' is read as '\%'; cron takes that % as the start of the command's input",
            )
        first, _, rest = command.partition(" ")
        if first == "*" and rest:
            self._notice(number, "command", "begins with '*': a sixth field is not read here")
        elif rest and self._is_account(first):
            self._notice(
                number,
                "command",
                f"begins with the user name {first!r}: there is no user column here, "
                "so the shell will look for a command of that name",
            )

    def _name(self, number: int) -> str:
        return f"{self._file_name}:{number}"

    def _wrong(self, number: int, message: str, key: str = "") -> None:
        self.problems.append(self._about(number, key, message))

    def _notice(self, number: int, key: str, message: str) -> None:
        self.notices.append(self._about(number, key, message))

    def _about(self, number: int, key: str, message: str) -> ConfigProblem:
        where = f"job '{self._name(number)}'" if key in ("schedule", "command") else ""
        return ConfigProblem(self._path, number, 0, where, key, message)


def _live_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = raw.removesuffix("\r").strip()
        if line and line[0] != "#":
            yield number, line


def _schedule_problem(schedule: str, key: str) -> str | None:
    try:
        parse(schedule, key=key, zone=None)
    except ScheduleError as error:
        return f"invalid schedule '{schedule}': {error}"
    return None


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _shown(line: str) -> str:
    """Return a line as it may be shown: not what follows an equals sign, and not at length."""
    shown, equals, _ = line.partition("=")
    shown += "=..." if equals else ""
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 3]}..."


def _is_account(word: str) -> bool:
    """Return whether a word is a user of this host and no program's name."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", word) is None or shutil.which(word):
        return False
    try:
        import pwd

        pwd.getpwnam(word)
    except (ImportError, KeyError):
        return False
    return True
