"""
What an operator should know about a configuration that is valid: lines for the log.

docs/configuration.md, "What is wrong, and what is worth saying", lists them.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Iterator

import attrs

from cronstable.config.prefix import filled
from cronstable.config.values import SHORTEST_MASKED, JobConfig, Report
from cronstable.config.world import World
from cronstable.schedule import Schedule
from cronstable.schedule.lint import NOTE, lint

_STANDARD = JobConfig("", "", "", None)
_HOOKS = (
    ("onFailure", "on_failure"),
    ("onPermanentFailure", "on_permanent_failure"),
    ("onSuccess", "on_success"),
    ("onLate", "on_late"),
)


@attrs.frozen
class Notice:
    """A line for the log, at a level of the C{logging} module."""

    level: int
    text: str


def warning(text: str) -> Notice:
    """Return a notice at WARNING."""
    return Notice(logging.WARNING, text)


def info(text: str) -> Notice:
    """Return a notice at INFO."""
    return Notice(logging.INFO, text)


def of_jobs(jobs: Iterable[JobConfig], world: World) -> Iterator[Notice]:
    """Yield what is to be said about single jobs."""
    for job in jobs:
        if job.schedule is not None:
            yield from of_schedule(f"job '{job.name}'", job.schedule_text, job.schedule, world)
        yield from of_launch(f"job '{job.name}'", job, world)


def of_names(names: Iterable[str]) -> Iterator[Notice]:
    """Yield what is to be said about names of jobs that nobody can tell apart by eye."""
    seen: dict[str, str] = {}
    for name in names:
        looks = name if name.isascii() else unicodedata.normalize("NFC", name)
        twin = seen.setdefault(looks, name)
        if twin != name:
            yield warning(
                f"the jobs {twin!a} and {name!a} have names that look alike; both run, but people "
                "will mix them up"
            )


def of_schedule(where: str, written: str, schedule: Schedule, world: World) -> Iterator[Notice]:
    """Yield what the lint finds in a schedule."""
    for finding in lint(schedule, world.now):
        level = logging.INFO if finding.level == NOTE else logging.WARNING
        yield Notice(level, f"{where}: schedule '{written}': [{finding.code}] {finding.message}")


def of_launch(where: str, job: JobConfig, world: World) -> Iterator[Notice]:
    """Yield what is to be said about how a job or task is launched and reported."""
    prefix = job.stream_prefix
    if prefix is not _STANDARD.stream_prefix and filled(prefix, "job", "stdout") is None:
        yield warning(
            f"{where}: streamPrefix: only {{job_name}} and {{stream_name}} are known in braces, "
            f"got {prefix!r}; it is used literally"
        )
    for name in _short_secrets(job, world):
        yield warning(
            f"{where}: secrets: '{name}' is shorter than {SHORTEST_MASKED} characters, so that "
            "it is not masked in output"
        )
    for hook, report in reports(job):
        yield from of_report(f"{where}: {hook}", report)


def reports(job: JobConfig) -> Iterator[tuple[str, Report]]:
    """Yield the hooks of a job that are not the standard ones, with their reports."""
    for hook, field in _HOOKS:
        report = getattr(job, field)
        if report is not getattr(_STANDARD, field):
            yield hook, report


def of_report(where: str, report: Report) -> Iterator[Notice]:
    """Yield what is to be said about the reporters of one hook."""
    for name, timeout, seconds in (
        ("shell", report.shell.timeout, report.shell.seconds),
        ("webhook", report.webhook.timeout, report.webhook.seconds),
    ):
        if timeout != seconds:
            yield warning(
                f"{where}.report.{name}.timeout: must be more than 0, got {timeout}; "
                f"{seconds:g} seconds are used"
            )


def _short_secrets(job: JobConfig, world: World) -> Iterator[str]:
    for named in job.secrets:
        secret = named.secret
        value = secret.value
        if not value and not secret.from_file and secret.from_env_var:
            value = world.environ.get(secret.from_env_var)
        if value and len(value) < SHORTEST_MASKED:
            yield named.name
