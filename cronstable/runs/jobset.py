"""The set of jobs in force: one immutable value that runs and scheduler share."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from cronstable.config.values import JobConfig


@attrs.frozen(eq=False)
class JobSet:
    """Jobs by name, in configuration order, and the ID that peers compare."""

    jobs: Mapping[str, JobConfig] = attrs.field(factory=dict)
    job_set_id: str = ""
    order: Mapping[str, int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "order", {name: at for at, name in enumerate(self.jobs)})

    def find(self, name: str) -> JobConfig | None:
        """Return the job called C{name}, if it is configured."""
        return self.jobs.get(name)
