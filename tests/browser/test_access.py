"""Tokens, scopes, and daemons that are away: what the page does at the edges."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from tests.browser.base import BrowserTestCase


class TokenTests(BrowserTestCase):
    """The page asks for a token when the daemon wants one, and keeps it for the tab only."""

    expected_complaints = ("401", "403")

    def test_prompt_wrong_then_right(self) -> None:
        """A wrong token is refused in the dialog; the right one opens the page and is kept."""
        fake = self.serve(token="secret")
        self.browser.open(fake.url)
        self.browser.wait(
            "the prompt", "return document.querySelector('dialog input[type=password]')"
        )
        self.assertNotIn(
            "tr", self.browser.run("return [...document.querySelectorAll('tr.job')].map(e => 'tr')")
        )
        self.browser.screenshot("token")
        self.browser.type("dialog input", "wrong\ue007")
        self.browser.wait(
            "the refusal", "return /does not know/.test(document.querySelector('dialog').innerText)"
        )
        self.browser.run("document.querySelector('dialog input').value = ''")
        self.browser.type("dialog input", "secret\ue007")
        self.browser.wait("the table", "return document.querySelector('tr.job')")
        kept = self.browser.run(
            "return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]"
        )
        self.assertIn("secret", kept[0])
        self.assertNotIn("secret", kept[1] + kept[2])
        self.browser.open(fake.url)
        self.browser.wait("the table after a reload", "return document.querySelector('tr.job')")
        self.assertFalse(self.browser.run("return Boolean(document.querySelector('dialog'))"))

    def test_token_can_be_forgotten(self) -> None:
        """Forgetting the token sends the page back to the prompt."""
        fake = self.serve(token="secret")
        self.browser.open(fake.url)
        self.browser.wait(
            "the prompt", "return document.querySelector('dialog input[type=password]')"
        )
        self.browser.type("dialog input", "secret\ue007")
        self.browser.wait(
            "the table",
            "return document.querySelector('tr.job') && !document.querySelector('dialog')",
        )
        self.browser.press("Control+k")
        self.browser.type(".palette-input", "forget the token\ue007")
        self.browser.wait(
            "the dialog", "return document.querySelector('dialog input[type=password]')"
        )
        self.press_button("Forget it", "dialog")
        self.browser.wait(
            "the prompt again",
            "return /asks for a token/.test((document.querySelector('dialog') || {}).innerText)",
        )
        self.assertEqual(self.browser.run("return sessionStorage.length"), 0)

    def test_view_scope_hides_what_it_cannot_do(self) -> None:
        """With a view token there are no run, stop and pause buttons, and their keys do nothing."""
        fake = self.serve(token="look", scopes=("view",))
        self.browser.open(fake.url)
        self.browser.wait(
            "the prompt", "return document.querySelector('dialog input[type=password]')"
        )
        self.browser.type("dialog input", "look\ue007")
        self.browser.wait(
            "the table",
            "return document.querySelector('tr.job') && !document.querySelector('dialog')",
        )
        self.browser.wait("the badge", "return !document.querySelector('.badge').hidden")
        shown = self.browser.run(
            "return [...document.querySelectorAll('.acts button')].filter(b => b.offsetParent)"
            ".map(b => b.getAttribute('aria-label'))"
        )
        self.assertEqual(set(shown), {"Log (l)"})
        self.browser.press("j", "r", "p", "x", "x")
        self.wait_for_polls(fake)
        self.assertEqual(fake.posts, [])

    def test_anonymous_board_does_not_prompt(self) -> None:
        """Where anonymous callers may view there is no prompt, but a token can be entered."""
        fake = self.serve(token="secret")
        fake.anonymous = True
        self.open(fake.url)
        self.browser.wait("the badge", "return !document.querySelector('.badge').hidden")
        self.assertFalse(self.browser.run("return Boolean(document.querySelector('dialog'))"))
        self.browser.click(".badge")
        self.browser.type("dialog input", "secret\ue007")
        self.browser.wait("control", "return document.querySelector('.badge').hidden")


class AnswerTests(BrowserTestCase):
    """What the daemon answers to an action is said where it was asked."""

    def test_held_output_names_its_holder(self) -> None:
        """A run whose process is gone says who keeps it open, and since when it runs."""
        fake = self.serve()
        fake.by_name["import-orders"].extra["instances"] = [
            {
                "started_at": datetime.fromtimestamp(time.time() - 7300, timezone.utc).isoformat(),
                "state": "exited",
                "output_held_by": [{"pid": 77, "command": "helper"}],
            }
        ]
        self.open(fake.url, "#job/import-orders")
        self.browser.wait("the drawer", "return !document.querySelector('.drawer').hidden")
        facts = self.browser.text(".drawer")
        self.assertIn("helper (pid 77)", facts)
        self.assertIn("for 2 h", facts)

    def test_queued_start_tells_its_place(self) -> None:
        """A start of a pooled job says its number in the queue."""
        self.open(self.serve().url)
        self.press_in_row("thumbnails", "Run")
        self.wait_row("thumbnails", ".job-note", lambda text: "number 2 in pool imaging" in text)

    def test_run_all_failing_goes_one_by_one(self) -> None:
        """The bulk dialog starts each failing job and shows each answer."""
        fake = self.serve()
        self.open(fake.url)
        self.press_button("Run all failing", "#jobs")
        self.press_button("Run 3 jobs", "dialog")
        self.browser.wait(
            "three answers",
            "return document.querySelector('dialog').innerText.split('started').length === 4",
        )
        self.assertEqual(
            [path for path, _ in fake.posts],
            ["/jobs/sync/start", "/jobs/mail-digest/start", "/jobs/retry-me/start"],
        )
        self.browser.screenshot("bulk")

    def test_pause_form_sends_length_and_reason(self) -> None:
        """The drawer's pause takes a length and a reason."""
        fake = self.serve()
        self.open(fake.url, "#job/backup")
        self.browser.wait("the drawer", "return !document.querySelector('.drawer').hidden")
        self.press_button("Pause", ".drawer-acts")
        self.press_button("4 h", ".pause-form")
        self.browser.type(".pause-form input", "disk is full\ue007")
        self.browser.wait_for("the request", lambda: fake.posts)
        self.assertEqual(
            fake.posts,
            [
                (
                    "/jobs/backup/pause",
                    {"durationSeconds": 14400, "note": "disk is full", "by": "dashboard"},
                )
            ],
        )

    def test_confirmed_stop_only(self) -> None:
        """One press on stop sends nothing; after a few seconds the next one is again the first."""
        fake = self.serve()
        self.open(fake.url)
        self.press_in_row("import-orders", "Stop")
        self.wait_row("import-orders", ".job-note", lambda text: text == "press again to stop")
        self.assertEqual(fake.posts, [])
        self.press_in_row("import-orders", "Press again")
        self.browser.wait_for("the request", lambda: fake.posts)
        self.wait_row("import-orders", ".job-note", lambda text: text == "stopped")


class AwayTests(BrowserTestCase):
    """A daemon that does not answer, or comes back as another process."""

    expected_complaints = ("ERR_", "Failed to load")

    def test_lost_and_found(self) -> None:
        """While the daemon is away the page says so and how old its facts are; then it goes on."""
        fake = self.serve()
        self.open(fake.url)
        fake.down = True
        self.browser.wait(
            "the verdict",
            "return /No answer/.test(document.querySelector('h1').innerText)",
        )
        self.assertIn("What you see is from", self.browser.text("h1"))
        self.assertIn("no answer", self.browser.text(".live"))
        self.assertIn("no signal", self.browser.run("return document.title"))
        self.browser.screenshot("away")
        fake.down = False
        self.browser.press("g")
        self.browser.wait(
            "it is back",
            "return /failing/.test(document.querySelector('h1').innerText)",
        )

    def test_log_survives_a_cut(self) -> None:
        """When the stream breaks and the daemon replays the run, no line stands twice."""
        fake = self.serve()
        self.open(fake.url, "#job/import-orders")
        self.browser.wait(
            "lines", "return document.querySelectorAll('.drawer .log-line').length > 45"
        )
        fake.cut_logs()
        self.browser.wait(
            "the cut",
            "return /connection lost/.test(document.querySelector('.log-state').textContent)",
        )
        self.browser.wait(
            "live again",
            "return document.querySelector('.log-state').textContent === 'live'",
        )
        self.browser.wait(
            "lines", "return document.querySelectorAll('.drawer .log-line').length > 45"
        )
        lines = self.log_lines()
        self.assertEqual(len(lines), len(set(lines)))
        self.assertTrue(lines[0].startswith("0000"))

    def test_next_run_follows_after_a_mark(self) -> None:
        """After the end of a run the next one is followed below a mark, the old lines stay once."""
        fake = self.serve()
        self.open(fake.url, "#job/backup")
        self.browser.wait(
            "the old run", "return document.querySelectorAll('.drawer .log-line').length === 30"
        )
        self.browser.press("r")
        self.browser.wait(
            "the new run",
            "return document.querySelectorAll('.drawer .log-line').length > 60",
        )
        order = self.browser.run(
            "return [...document.querySelectorAll('.log-line, .log-separator')]"
            ".map(e => e.className.split(' ')[0])"
        )
        self.assertEqual(order.index("log-separator"), 30)
        self.assertEqual(order.count("log-separator"), 1)
        self.assertIn("backup", fake.by_name)

    def test_a_job_that_is_gone(self) -> None:
        """A job that leaves the configuration says so in its open drawer."""
        fake = self.serve()
        self.open(fake.url, "#job/backup")
        self.browser.wait("the drawer", "return document.querySelector('.drawer .log-line')")
        fake.jobs.remove(fake.by_name.pop("backup"))
        self.browser.wait(
            "the words",
            "return /no longer has this job/.test(document.querySelector('.drawer').innerText)",
        )
