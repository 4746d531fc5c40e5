"""The job-set ID of whole configurations, against captured ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.errors import ConfigError
from cronstable.config.fingerprint import canonical_text, job_digest, job_set_id
from cronstable.config.load import Loaded, load
from cronstable.config.values import JobConfig, PushReport

VECTORS = Path(__file__).parent.parent / "vectors" / "fingerprint"
INDEX = json.loads((VECTORS / "index.json").read_text())
CASES = {
    case["id"]: case
    for case in (json.loads(path.read_text()) for path in sorted(VECTORS.glob("*.json")))
    if "id" in case
}
DEFAULT = json.loads((VECTORS / INDEX["default_job_preimage"]["file"]).read_bytes())


def difference(value: Any, default: Any) -> Any:
    """Return how a canonical value differs from the default one, as the cases write it."""
    if not (isinstance(value, dict) and isinstance(default, dict)):
        return value
    found = {
        key: difference(value[key], default.get(key))
        for key in value
        if key not in default or value[key] != default[key]
    }
    found.update((key, {"_absent": True}) for key in default if key not in value)
    return found


class VectorTestCase(SynchronousTestCase):
    """A test case that loads the configurations of the cases."""

    def load(self, case: dict[str, Any], **files: str) -> Loaded:
        """Load a case's files from a directory of their own."""
        directory = os.path.abspath(self.mktemp())
        os.makedirs(directory)
        for name, text in (case["files"] | files).items():
            path = Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, newline="")
        return load(
            os.path.join(directory, case["config"]) if case["config"] != "." else directory,
            environ=case["env"],
            now=1_767_225_600.0,
            cwd=directory,
            is_root=True,
        )


class CapturedTests(VectorTestCase):
    """Tests of every captured case."""

    def check_jobs(self, jobs: dict[str, JobConfig], case: dict[str, Any]) -> None:
        """Check the jobs and the ID of a case."""
        told = case["expect"].get("jobs", [])
        for expected in told:
            job = jobs[expected["name"]]
            text = canonical_text(job)
            self.assertEqual(
                difference(json.loads(text), DEFAULT), expected["canonical_difference"], case["id"]
            )
            self.assertEqual(len(text), expected["canonical_length"], case["id"])
            self.assertEqual(job_digest(job), expected["digest"], case["id"])
        self.assertTrue(len(jobs) == len(told) or not told, case["id"])
        self.assertEqual(job_set_id(jobs.values()), case["expect"]["job_set_id"], case["id"])

    def accepted(self, case: dict[str, Any]) -> bool:
        """Return whether a case is one that we accept and load."""
        if case.get("functions_only") or case.get("reference_only"):
            return False
        return bool(case["expect"]["exit_status"] == 0)

    def test_accepted(self) -> None:
        """Every accepted configuration has the captured canonical texts, digests and ID."""
        tried = [case for case in CASES.values() if self.accepted(case)]
        self.assertGreater(len(tried), 100)
        for case in tried:
            try:
                loaded = self.load(case)
            except ConfigError as error:
                self.fail(f"{case['id']}: {error}")
            self.check_jobs(dict(loaded.config.jobs), case)
            self.assertEqual(loaded.job_set_id, case["expect"]["job_set_id"])

    def test_refused(self) -> None:
        """Every configuration that is refused by both is refused here."""
        refused = [
            case
            for case in CASES.values()
            if case["expect"].get("exit_status") == 1 and not case.get("reference_only")
        ]
        self.assertGreater(len(refused), 3)
        for case in refused:
            with self.assertRaises(ConfigError, msg=case["id"]):
                self.load(case)

    def test_push(self) -> None:
        """Push reporters, which need a relay to load, are told whole in the captured way."""
        tried = [case for case in CASES.values() if case.get("functions_only")]
        self.assertGreater(len(tried), 0)
        (minimal,) = self.load(CASES["job-minimal"]).config.jobs.values()
        for case in tried:
            (expected,) = case["expect"]["jobs"]
            block = expected["canonical_difference"]["onFailure"]["report"]["push"]
            push = PushReport(block["enabled"], block["priority"], block["includeLogTail"])
            job = attrs.evolve(minimal, on_failure=attrs.evolve(minimal.on_failure, push=push))
            self.check_jobs({job.name: job}, case)

    def test_groups(self) -> None:
        """Configurations that mean the same share an ID, and no others do."""
        groups = [set(group) for group in INDEX["same_id_groups"]]
        ids: dict[str, set[str]] = {}
        for case in filter(self.accepted, CASES.values()):
            ids.setdefault(self.load(case).job_set_id, set()).add(case["id"])
        for cases in ids.values():
            self.assertTrue(len(cases) == 1 or cases in groups, cases)


class FlowStyleTests(VectorTestCase):
    """Tests for what only we accept."""

    def test_flow_style(self) -> None:
        """Flow style gives the ID of the same configuration in block style."""
        case = CASES["env-names"]
        (name,) = case["files"]
        flow = (
            "jobs: [{name: hello, command: echo hi, schedule: '* * * * *',"
            " environment: [{key: ZED, value: '1'}, {key: ALPHA, value: x}]}]\n"
        )
        self.assertEqual(self.load(case, **{name: flow}).job_set_id, case["expect"]["job_set_id"])
        empty = CASES["yaml-flow-style-error"]
        self.assertEqual(self.load(empty).job_set_id, CASES["set-empty"]["expect"]["job_set_id"])
