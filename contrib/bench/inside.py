"""
What a job can measure of the state that its daemon keeps for it: run by one, within its run.

Usage: inside.py OUT TOOL: leave in the file OUT what was found for the command line tool TOOL.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import sys
import time
import urllib.parse
from pathlib import Path

import resting
from table import Found

SETS = 300


def sets() -> float:
    """Return acknowledged values per second, set one after another over one connection."""
    place = urllib.parse.urlsplit(os.environ["CRONSTABLE_STATE_URL"])
    headers = {
        "Authorization": f"Bearer {os.environ['CRONSTABLE_STATE_TOKEN']}",
        "Content-Type": "application/json",
    }
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    begun = time.perf_counter()
    for number in range(SETS):
        body = json.dumps({"key": f"key{number % 10}", "value": number})
        connection.request("POST", f"{place.path}/v1/kv/set", body, headers)
        answer = connection.getresponse()
        if json.loads(answer.read()).get("ok") is not True:
            raise RuntimeError(f"a value was not set: {answer.status}")
    return SETS / (time.perf_counter() - begun)


def found(tool: str) -> Found:
    """Return sets per second, and milliseconds of asking for a value by the tool."""
    rate = sets()
    took = [resting.timed([tool, "state", "get", "key1"], os.environ) for _ in range(9)]
    return {"sets": rate, "get": 1e3 * statistics.median(took)}


if __name__ == "__main__":
    unfinished = Path(sys.argv[1] + ".new")
    unfinished.write_text(json.dumps(found(sys.argv[2])))
    unfinished.rename(sys.argv[1])
