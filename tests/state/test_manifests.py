"""What nodes say they use."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import Config, DagConfig, TaskConfig
from cronstable.state.instants import from_text
from cronstable.state.manifests import InUse, Names, history_spans, in_use, manifest, names_of
from tests.fakes import job
from tests.state.support import NOW, vector


def names(case: dict[str, list[str]]) -> Names:
    """Return the captured C{own} of a case."""
    return Names(
        frozenset(case["jobs"]),
        frozenset(case["hosts"]),
        frozenset(case["artifact_scopes"]),
        frozenset(case["dags"]),
    )


class NamesTests(SynchronousTestCase):
    """What a configuration uses."""

    def test_names(self) -> None:
        """Disabled jobs, workflows and scopes of tasks count too, the shared scope always."""
        task = TaskConfig("task", attrs.evolve(job("flow.task"), allowed_scopes=("inner",)))
        config = Config(
            {
                "job": attrs.evolve(job("job"), allowed_scopes=("shared",)),
                "off": attrs.evolve(job("off"), enabled=False),
            },
            {"flow": DagConfig("flow", (task,))},
        )
        self.assertEqual(
            names_of(config, "node-a"),
            Names(
                frozenset({"job", "off"}),
                frozenset({"node-a"}),
                frozenset({"global", "shared", "inner"}),
                frozenset({"flow"}),
            ),
        )


class InUseTests(SynchronousTestCase):
    """What is in use anywhere."""

    def test_captured_cases(self) -> None:
        """Jobs and hosts that are kept are those that the reference keeps."""
        for case in vector("gc.json")["keep_set"]:
            now = from_text(case["now"])
            assert now is not None
            used = in_use(case["manifests"], names(case["own"]), now, case["grace"])
            self.assertEqual(sorted(used.names.jobs), case["keep"]["runs/"], case["case"])
            self.assertEqual(sorted(used.names.hosts), case["keep"]["counters/"], case["case"])
            self.assertEqual(used.recent, case["recent_count"], case["case"])
            self.assertEqual(used.covers_scopes, case["covers_scopes"], case["case"])

    def test_scopes_and_workflows(self) -> None:
        """Scopes and workflows of all recent manifests are in use too."""
        theirs = manifest("v1:x", "b", Names(scopes=frozenset("s"), dags=frozenset("d")), NOW)
        used = in_use([theirs], Names(scopes=frozenset("t"), dags=frozenset("e")), NOW, 10.0)
        self.assertEqual(used.names.scopes, {"s", "t", "global"})
        self.assertEqual(used.names.dags, {"d", "e"})

    def test_mistyped(self) -> None:
        """Fields of another kind name nothing, and do not cover scopes."""
        broken = {"at": "2026-01-01T00:00:00+00:00", "jobs": "abc", "host": 5, "scopes": "x"}
        self.assertEqual(in_use([broken], Names(), NOW, 1e9), InUse(Names(), 1, False))


class ManifestTests(SynchronousTestCase):
    """The record itself."""

    def test_record(self) -> None:
        """Names are sorted, the shared scope is always among the scopes."""
        used = Names(frozenset({"b", "a"}), frozenset({"h"}), frozenset({"z"}), frozenset({"d"}))
        self.assertEqual(
            manifest("v1:x", "node-a", used, NOW),
            {
                "jobSetId": "v1:x",
                "host": "node-a",
                "jobs": ["a", "b"],
                "scopes": ["global", "z"],
                "dags": ["d"],
                "at": "2026-01-01T00:00:00+00:00",
            },
        )

    def test_history(self) -> None:
        """Silence means something once a manifest is a whole grace old."""
        records = [manifest("v1:x", "a", Names(), NOW - age) for age in (0, 99)]
        self.assertFalse(history_spans(records, NOW, 100.0))
        self.assertTrue(history_spans(records, NOW, 99.0))
        self.assertFalse(history_spans([{"at": "garbage"}, {}], NOW, 1.0))
