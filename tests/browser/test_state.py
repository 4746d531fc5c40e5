"""The panel of the durable store in a real browser."""

from __future__ import annotations

from tests.browser.base import BrowserTestCase
from tests.browser.fake_data import HOSTILE_NAME

PANEL = "#panel-state"


class StatePanelTests(BrowserTestCase):
    """What an operator sees of the store."""

    expected_complaints = ("/state/records",)

    def show(self, durable: bool = True) -> None:
        """Open the page of a daemon with a store, or without one."""
        self.fake = self.serve()
        self.fake.durable = durable
        self.open(self.fake.url)

    def look(self) -> None:
        """Wait for the panel and look inside."""
        self.browser.wait("the panel", f"return !document.querySelector('{PANEL}').hidden")
        self.press_button("Look inside", PANEL)
        self.browser.wait("its inside", f"return document.querySelector('{PANEL} .state-body')")

    def inside(self) -> str:
        """Return the text of the panel."""
        return self.browser.text(PANEL)

    def test_no_store(self) -> None:
        """Without a store there is no panel, and the daemon is asked once only."""
        self.show(durable=False)
        self.browser.wait_for("two looks at the jobs", lambda: self.fake.hits["/jobs"] >= 3)
        self.assertTrue(self.browser.run(f"return document.querySelector('{PANEL}').hidden"))
        self.assertEqual(self.fake.hits["/state"], 1)

    def test_asked_only_while_open(self) -> None:
        """A closed panel asks nothing; what it knows from the start is on its bar."""
        self.show()
        self.browser.wait("the panel", f"return !document.querySelector('{PANEL}').hidden")
        self.browser.wait_for("two looks at the jobs", lambda: self.fake.hits["/jobs"] >= 3)
        self.assertEqual(self.fake.hits["/state"], 1)
        self.assertIn("filesystem, single-node", self.inside())
        self.press_button("Look inside", PANEL)
        self.browser.wait_for("another question", lambda: self.fake.hits["/state"] >= 2)
        self.press_button("Close", PANEL)
        self.assertFalse(self.browser.run(f"return document.querySelector('{PANEL} .state-body')"))

    def test_overview(self) -> None:
        """Where it is, how much is in it, its leases, operations, retries and slots are told."""
        self.show()
        self.look()
        text = self.inside()
        for part in (
            "/var/lib/cronstable/default",
            "819 in 4 streams",
            "Archived output\t4\t1",
            "Runs\t814\t2",
            "retry-claim/backup",
            "node-b#ba9876543210",
            "over",
            "append",
            "1,234",
            "1.500",
            "Retries that wait here",
            "Cluster slots held here",
            "Writes lost",
        ):
            self.assertIn(part, text)
        self.browser.screenshot("state")

    def test_tabs(self) -> None:
        """Each primitive that is there has a tab with its scopes; keys are told, not values."""
        self.show()
        self.look()
        tabs = self.browser.run(
            f"return [...document.querySelectorAll('{PANEL} .choice')].map(b => b.textContent)"
        )
        self.assertEqual(
            tabs,
            [
                "Overview", "Cursors", "Workflow runs", "Keys",
                "Archived output", "Version stamp", "Runs",
            ],
        )  # fmt: skip
        self.press_button("Keys", PANEL)
        self.press_button("sync", f"{PANEL} .state-body")
        self.browser.wait_for("the keys", lambda: "last-id" in self.inside())
        self.assertIn("<img src=x onerror=alert(1)>", self.inside())
        self.assertIn("2026-01-01T00:00:00.000Z", self.inside())
        self.assertIn("1e+300", self.inside())
        self.press_button("Back to Keys", PANEL)
        self.assertNotIn("last-id", self.inside())

    def test_records(self) -> None:
        """A stream shows its newest records, one column for each member, and that there is more."""
        self.show()
        self.look()
        self.press_button("Runs", PANEL)
        self.assertIn("812", self.inside())
        self.press_button(HOSTILE_NAME[:8], f"{PANEL} .state-body")
        self.browser.wait_for("the records", lambda: "outcome" in self.inside())
        heads = self.browser.run(
            f"return [...document.querySelectorAll('{PANEL} .state-records th')]"
            ".map(th => th.textContent)"
        )
        self.assertEqual(heads, ["outcome", "exit_code", "finished_at", "resources"])
        self.assertIn("There is more than is shown here.", self.inside())

    def test_output_stays_closed(self) -> None:
        """Archived output is counted and cannot be opened, nor can workflow runs."""
        self.show()
        self.look()
        for tab in ("Archived output", "Workflow runs"):
            self.press_button(tab, PANEL)
            buttons = self.browser.run(
                f"return document.querySelectorAll('{PANEL} .state-body button').length"
            )
            self.assertEqual(buttons, 0, tab)

    def test_back_after_a_cut(self) -> None:
        """While the daemon is away the inside says so; it is there again with the daemon."""
        self.show()
        self.look()
        self.press_button("Keys", PANEL)
        self.press_button("sync", f"{PANEL} .state-body")
        self.browser.wait_for("the keys", lambda: "last-id" in self.inside())
        self.fake.down = True
        self.browser.wait_for("the cut", lambda: "last-id" not in self.inside())
        self.fake.down = False
        self.browser.press("g")
        self.browser.wait_for("the scopes", lambda: "Scope" in self.inside())

    def after_a_cut(self) -> None:
        """Let the daemon be away for a moment, after which it is asked who looks."""
        self.fake.down = True
        self.browser.press("g")
        self.browser.wait("the cut", "return /no signal/.test(document.title)")
        self.fake.down = False
        self.browser.press("g")
        self.browser.wait("the end of it", "return !/no signal/.test(document.title)")

    def test_reload_with_a_store(self) -> None:
        """A store that a reload adds or removes is noticed when who looks is asked again."""
        self.show(durable=False)
        self.browser.wait_for("the first answer", lambda: self.fake.hits.get("/state") == 1)
        self.fake.durable = True
        self.after_a_cut()
        self.browser.wait("the panel", f"return !document.querySelector('{PANEL}').hidden")
        self.after_a_cut()
        self.wait_for_polls(self.fake)
        self.assertEqual(self.fake.hits["/state"], 2)
        self.assertFalse(self.browser.run(f"return document.querySelector('{PANEL}').hidden"))
        self.fake.durable = False
        self.after_a_cut()
        self.browser.wait("no panel", f"return document.querySelector('{PANEL}').hidden")
