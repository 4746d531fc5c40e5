"""
C{${NAME}} and C{${NAME:-default}} in the text values of a YAML configuration.

docs/configuration.md, "Values from the environment", specifies the forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORM = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Unset(LookupError):
    """A variable without a default that the environment does not have; C{name} is its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def interpolate(text: str, environ: Mapping[str, str]) -> str:
    """
    Return C{text} with its forms replaced, in one pass; anything malformed stays as it is.

    Raises L{Unset}.
    """

    def value(form: re.Match[str]) -> str:
        name, default = form.group(1), form.group(2)
        if name is None:
            return "$"
        found = environ.get(name)
        if default is None:
            if found is None:
                raise Unset(name)
            return found
        return found or default

    return _FORM.sub(value, text)
