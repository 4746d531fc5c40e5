"""
The two text formats of a scrape: Prometheus text 0.0.4 and OpenMetrics 1.0.0.

docs/metrics.md lists where they differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import attrs

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END = "# EOF\n"
"""What closes an OpenMetrics scrape."""

Kind = Literal["counter", "gauge", "info", "histogram"]


@attrs.frozen
class Sample:
    """One value; C{suffix} is that of a histogram's part."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""


@attrs.frozen
class Family:
    """
    A family of series; its name has the C{_total} of a counter and the C{_info} of an info.

    A family without samples is left out of a scrape altogether.
    """

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


def wanted_format(accept: str | None) -> bool:
    """Return whether a request's C{Accept} asks for OpenMetrics."""
    return accept is not None and "application/openmetrics-text" in accept.lower()


def content_type(openmetrics: bool) -> str:
    """Return the content type of a scrape."""
    return OPENMETRICS if openmetrics else TEXT


def head(name: str, kind: Kind, help_text: str, openmetrics: bool) -> str:
    """Return the lines that come before a family's samples."""
    if not openmetrics:
        shown = "gauge" if kind == "info" else kind
        return f"# HELP {name} {help_text}\n# TYPE {name} {shown}\n"
    if kind == "counter":
        name = name.removesuffix("_total")
    elif kind == "info":
        name = name.removesuffix("_info")
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"


def text_of(family: Family, openmetrics: bool) -> str:
    """Return C{family} as text, empty if it has no samples."""
    if not family.samples:
        return ""
    lines = [head(family.name, family.kind, family.help, openmetrics)]
    lines += [
        f"{family.name}{sample.suffix}{_labels(sample.labels)} {number(sample.value)}\n"
        for sample in family.samples
    ]
    return "".join(lines)


def gauge(name: str, help_text: str, value: float | None) -> Family:
    """Return a gauge of one series, or of none where C{value} is None."""
    return Family(name, "gauge", help_text, () if value is None else (Sample(value),))


def labelled(
    name: str, kind: Kind, help_text: str, label: str, values: Iterable[tuple[str, float]]
) -> Family:
    """Return a family with one label, from pairs of its value and the series' value."""
    samples = tuple(Sample(value, ((label, text),)) for text, value in values)
    return Family(name, kind, help_text, samples)


def histogram_samples(
    bounds: Sequence[float], counts: Sequence[int], total: float
) -> tuple[Sample, ...]:
    """
    Return the samples of one histogram.

    C{counts} has one entry per bound and one more for what is above; they are not cumulative.
    """
    samples = []
    seen = 0
    for bound, count in zip((*map(bound_text, bounds), "+Inf"), counts, strict=True):
        seen += count
        samples.append(Sample(seen, (("le", bound),), "_bucket"))
    return (*samples, Sample(total, (), "_sum"), Sample(seen, (), "_count"))


def bound_text(bound: float) -> str:
    """Return a histogram bound as both formats write it: C{1.0}, C{0.5}."""
    return repr(float(bound))


def number(value: float) -> str:
    """Return a value as both formats write it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return repr(value) if isinstance(value, float) else str(int(value))


def escape(text: str) -> str:
    """Return C{text} as the value of a label, without its quotes."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    if "\\" in text or '"' in text or "\n" in text or "\r" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in labels) + "}"
