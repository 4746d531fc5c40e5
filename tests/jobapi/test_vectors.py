"""The captured requests, asked of this service."""

from __future__ import annotations

import json
import re
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import jobstate
from tests.answers import Answer
from tests.jobapi.support import VECTORS, World

BYTES = re.compile(r"<(\d+) bytes>")


def captured() -> list[dict[str, Any]]:
    """Return the raw requests that were captured."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(VECTORS.glob("v1-*.json"))]
    return [each for each in found if "request" in each]


def shape(value: Any) -> Any:
    """Return keys and kinds of a JSON value."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return None if value is None else type(value).__name__


class ReplayTests(SynchronousTestCase):
    """One request each, on a store that holds what was there when it was captured."""

    def world(self) -> World:
        world = World(max_value_bytes=4096, max_artifact_bytes=10000)
        world.caller.secrets = {"API_TOKEN": "sekret", "B_TOKEN": "other"}
        store = world.store.store
        jobstate.kv_set(store, "wire", "n", None)
        jobstate.kv_set(store, "global", "shared", "yes")
        jobstate.cursor_advance(store, "wire", "c", "a")
        jobstate.artifact_put(store, "wire", "rep", b"payload")
        jobstate.artifact_put(store, "wire", "rep2", b"")
        return world

    def raw(self, text: str) -> bytes:
        """Return the body of a captured request; of a long one only its length is known."""
        long = BYTES.fullmatch(text)
        if long is None:
            return text.encode()
        length = int(long[1])
        value = b'{"key":"bigkey","value":"' + b"x" * (length - 27) + b'"}'
        return value if length < 10000 else b"x" * length

    def test_all(self) -> None:
        """Status, headers of interest and the shape of the body are what they were."""
        asked = captured()
        self.assertGreater(len(asked), 30)
        for case in asked:
            self.replay(case)

    def test_same_words(self) -> None:
        """Errors say what they always said, but where those words named an implementation."""
        compared = 0
        for case in captured():
            error = case["response"]["body"].get("json", {}).get("error")
            if error is None or "not portable" in error or case["response"]["status"] == 409:
                continue
            self.assertEqual(self.answer(case).error, error, case["id"])
            compared += 1
        self.assertGreater(compared, 20)

    def replay(self, case: dict[str, Any]) -> None:
        expected, answer = case["response"], self.answer(case)
        self.assertEqual(answer.status, expected["status"], (case["id"], answer.body))
        for name, value in expected["headers"].items():
            self.assertEqual(answer.headers[name.lower()], value, case["id"])
        if "json" in expected["body"]:
            self.assertEqual(shape(answer.json()), shape(expected["body"]["json"]), case["id"])
        else:
            self.assertEqual(answer.body.decode(), expected["body"]["text"], case["id"])

    def answer(self, case: dict[str, Any]) -> Answer:
        """Return what a captured request is answered."""
        world, request = self.world(), case["request"]
        headers = {
            name: value.replace("<run token: 64 hex>", world.caller.token)
            for name, value in request["headers"].items()
        }
        connection = world.connect()
        body = self.raw(request.get("raw", ""))
        connection.send(request["method"], request["path"], body, **headers)
        answer = connection.answer()
        assert answer is not None, case["id"]
        return answer
