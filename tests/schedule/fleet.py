"""
The fleet that the recorded answers about schedules belong to.
"""

from __future__ import annotations

import os
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import Schedule, parse
from tests.schedule.support import VECTORS, load

FLEET = (
    *(("ok-minutely", "* * * * *"), ("every-2s", "*/2 * * * * * *"), ("fails", "0 4 * * *")),
    *(("long", "0 0 1 1 *"), ("monitored", "15 2 * * *"), ("parked", "0 0 1 1 * 2020")),
    *(("hashed", "H H * * *"), ("ny-report", "30 2 * * mon,fri"), ("local-frame", "*/7 * * * *")),
    *(("dup-a", "0 0 * * *"), ("dup-b", "@daily"), ("slotted", "0 3 * * *")),
    *(("watched", "0 6 * * *"), ("name with space/slash", "45 3 * * *")),
    *(("chatty", "10 3 * * *"), ("killed-by-timeout", "20 3 * * *")),
    *(("state-user", "30 3 * * *"), ("dag:etl", "0 2 * * *")),
)
ZONES = {"ny-report": "America/New_York"}
RUNTIMES = {
    **dict.fromkeys(("ok-minutely", "every-2s", "fails", "local-frame", "watched", "chatty"), 0.02),
    **{"monitored": 2.2, "name with space/slash": 0.01, "killed-by-timeout": 1.1},
}


def fleet() -> list[tuple[str, Schedule]]:
    """
    The enabled jobs with a timetable, in the order of the configuration, then the workflow.
    """
    return [
        (name, parse(text, key=name, zone=ZONES.get(name, "UTC"), local=name == "local-frame"))
        for name, text in FLEET
    ]


def recorded(name: str) -> Any:
    """
    The recorded answer of a capture.
    """
    return load(VECTORS / "http" / f"{name}.json")["response"]["body"]["json"]


def query(name: str) -> dict[str, str]:
    """
    The query of the request of a capture.
    """
    path = load(VECTORS / "http" / f"{name}.json")["request"]["path"]
    return {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}


class LocalUtcTestCase(SynchronousTestCase):
    """
    A test on a host whose local clock is UTC, as the recording host's was.
    """

    def setUp(self) -> None:
        """
        Set TZ for the local frame.
        """
        patcher = mock.patch.dict(os.environ, {"TZ": "UTC0"})
        patcher.start()
        self.addCleanup(patcher.stop)
