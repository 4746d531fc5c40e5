"""What is wrong with a configuration: every problem at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from cronstable.config.sources import Source


@attrs.frozen
class ConfigProblem:
    """
    One thing that is wrong: where it is written, whose it is, which key, and why.

    C{line} and C{column} are 1-based, 0 where unknown.  C{where} names the owner as an operator
    would (C{job 'backup'}, C{dag 'etl': task 'load'}), C{key} is the dotted key inside it; both may
    be empty.  C{message} never holds a secret.
    """

    file: str
    line: int
    column: int
    where: str
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return ": ".join(part for part in (place, self.where, self.key, self.message) if part)


class ConfigError(Exception):
    """
    A configuration that cannot be used; C{problems} holds all that was found, in file order.

    The text has one problem a line, with a C{---} line between the problems of two files.
    C{sources} are the files that were read by then.
    """

    def __init__(self, problems: Iterable[ConfigProblem], sources: Iterable[Source] = ()) -> None:
        self.problems: tuple[ConfigProblem, ...] = tuple(problems)
        self.sources: tuple[Source, ...] = tuple(sources)
        super().__init__(self._text())

    def _text(self) -> str:
        lines: list[str] = []
        file: str | None = None
        for problem in self.problems:
            if file is not None and problem.file != file:
                lines.append("---")
            file = problem.file
            lines.append(str(problem))
        return "\n".join(lines)
