"""
Report texts from Jinja2 templates.

Rendering may be called from any thread.  What goes wrong is told as L{ReportFailed} without the
values of variables.  docs/reporting.md, "Templates", specifies the dialect.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from cronstable.reports.trouble import ReportFailed, one_line

LONGEST = 10 * 1024 * 1024
"""Characters of a rendered text; what is longer is cut, and says so."""

_CUT = "\n[... cut here, {} characters left out]\n"
_KEPT = 256


class Templates:
    """Compiled templates, the most recently used kept."""

    def __init__(self) -> None:
        self._environment: Any = None
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def render(self, key: str, source: str, variables: Mapping[str, Any]) -> str:
        """
        Return C{source} rendered; an undefined name is empty text.

        @param key: the configuration key that errors name, such as C{mail.body}.
        @raise ReportFailed: the template does not compile, or fails on these values.
        """
        template = self._template(key, source)
        try:
            text = str(template.render(variables))
        except Exception as error:
            raise ReportFailed(
                f"{key}: the template failed ({type(error).__name__}){_line(error)}"
            ) from None
        if len(text) > LONGEST:
            text = text[:LONGEST] + _CUT.format(len(text) - LONGEST)
        return text

    def _template(self, key: str, source: str) -> Any:
        with self._lock:
            template = self._compiled.get(source)
            if template is None:
                template = self._compiled[source] = self._compile(key, source)
                if len(self._compiled) > _KEPT:
                    self._compiled.popitem(last=False)
            else:
                self._compiled.move_to_end(source)
            return template

    def _compile(self, key: str, source: str) -> Any:
        from jinja2 import ChainableUndefined, TemplateSyntaxError
        from jinja2.sandbox import SandboxedEnvironment

        if self._environment is None:
            self._environment = SandboxedEnvironment(autoescape=False, undefined=ChainableUndefined)
        try:
            return self._environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ReportFailed(
                f"{key}: line {error.lineno} of the template: {one_line(error.message or '')}"
            ) from None


def _line(error: BaseException) -> str:
    """Return where in the template C{error} was raised, from its traceback."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f" in line {line}"
