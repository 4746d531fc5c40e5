"""The page in a real browser, against any daemon that has the jobs of C{target.yaml}."""

from __future__ import annotations

import time

from twisted.trial.unittest import SkipTest

from tests.browser.base import TARGET, Api, BrowserTestCase
from tests.browser.fake_data import HOSTILE_NAME, finished


class PageTests(BrowserTestCase):
    """What an operator does every day, on the fake daemon or on a real one."""

    fake_only = False
    expected_complaints = ("/start - Failed to load resource",)

    def setUp(self) -> None:
        super().setUp()
        if not TARGET:
            self.fake = self.serve()
        self.url = TARGET or self.fake.url
        self.api = Api(self.url)
        if TARGET:
            self.browser.open(self.url)
            self.browser.run("localStorage.clear(); sessionStorage.clear()")
            self.browser.open("about:blank")
            self.browser.complaints()

    def test_table_lists_every_job(self) -> None:
        """Each job of the daemon has a row; its schedule is in words, beside what was written."""
        self.open(self.url)
        self.assertEqual(sorted(self.names()), sorted(job["name"] for job in self.api.get("/jobs")))
        self.assertIn("daily 02:30", self.row("backup", ".c-schedule"))
        self.assertIn("30 2 * * *", self.row("backup", ".c-schedule"))
        self.assertEqual(self.row("legacy-export", ".c-state"), "disabled")
        self.assertIn("never fires", self.row("leap-job", ".c-name"))
        self.browser.screenshot("page")

    def test_verdict_names_what_fails(self) -> None:
        """The sentence at the top names a failing job and its end; pressing it opens its log."""
        if TARGET:
            self.api.run_once("sync")
        self.open(self.url)
        self.browser.wait(
            "the verdict", "return /failing/.test(document.querySelector('h1').innerText)"
        )
        self.assertRegex(self.browser.text("h1").replace("\u00a0", " "), r"sync \(exit 1, .*\)")
        self.assertIn("failing", self.browser.run("return document.title"))
        self.press_button("sync", "h1")
        self.browser.wait(
            "the drawer", "return document.querySelector('.drawer:not([hidden]) .log-line')"
        )
        self.assertEqual(self.browser.text(".drawer-title"), "sync")

    def test_filter_by_text_and_state(self) -> None:
        """Typing after / keeps the rows whose name or command matches; Escape gives all back."""
        self.open(self.url)
        everything = self.names()
        self.browser.press("/")
        self.browser.type("header input", "rotate")
        self.browser.wait("one row", "return document.querySelectorAll('tr.job').length === 1")
        self.assertEqual(self.names(), ["rotate-logs"])
        self.assertIn("1 of", self.browser.text(".jobs-foot"))
        self.browser.press("Escape", "Escape")
        self.browser.wait(
            "all rows", f"return document.querySelectorAll('tr.job').length === {len(everything)}"
        )
        self.press_button("Disabled", ".groups")
        self.browser.wait_for("only disabled jobs", lambda: self.names() == ["legacy-export"])

    def test_sort_by_column(self) -> None:
        """Pressing a column head sorts by it, pressing again turns the order round."""
        self.open(self.url)
        self.press_button("Job", ".jobs-table thead")
        self.browser.wait(
            "the order", "return document.querySelector('th.c-name[aria-sort=ascending]')"
        )
        first = self.names()
        self.press_button("Job", ".jobs-table thead")
        self.browser.wait(
            "the order", "return document.querySelector('th.c-name[aria-sort=descending]')"
        )
        self.assertEqual(self.names(), first[::-1])
        self.assertLess(first.index("backup"), first.index("rotate-logs"))

    def test_keys_move_and_open(self) -> None:
        """j and k move the selection, Enter opens the job, j then shows the next in the drawer."""
        self.open(self.url)
        names = self.names()
        self.browser.press("j", "j", "k", "j")
        self.browser.wait(
            "the second row selected",
            "const r = document.querySelector('tr.job[aria-selected=true]');"
            "return r && r.dataset.job === arguments[0]",
            names[1],
        )
        self.browser.press("Enter")
        self.browser.wait_for("the drawer", lambda: self.browser.text(".drawer-title") == names[1])
        self.browser.press("j")
        self.browser.wait_for(
            "the next job", lambda: self.browser.text(".drawer-title") == names[2]
        )
        self.assertIn("#job/", self.browser.run("return location.hash"))
        self.browser.press("Escape")
        self.browser.wait("a closed drawer", "return document.querySelector('.drawer').hidden")
        self.assertEqual(self.browser.run("return location.hash"), "")

    def test_drawer_keeps_the_place_in_the_list(self) -> None:
        """Opening a job at the end of the list does not scroll the list away."""
        self.open(self.url)
        self.browser.size(1440, 500)
        self.browser.run("document.querySelector('tr.job:nth-last-of-type(2)').scrollIntoView()")
        before = self.browser.run("return scrollY")
        self.browser.run(
            "document.querySelectorAll('tr.job')[arguments[0]].click()", len(self.names()) - 1
        )
        self.browser.wait("the drawer", "return !document.querySelector('.drawer').hidden")
        self.wait_for_rest(".drawer")
        self.assertEqual(self.browser.run("return scrollY"), before)

    def test_start_follow_and_stop(self) -> None:
        """A job started from its row answers in place, its log follows, a second press stops it."""
        self.open(self.url)
        self.press_in_row("counter", "Run")
        self.wait_row("counter", ".job-note", lambda text: text == "started")
        self.wait_row("counter", ".c-state", lambda text: text == "running")
        self.press_in_row("counter", "Log")
        self.browser.wait(
            "live lines",
            "return document.querySelectorAll('.drawer .log-line').length > 3",
        )
        earlier = self.log_lines()
        self.browser.wait_for("more lines", lambda: len(self.log_lines()) > len(earlier) + 2)
        self.browser.screenshot("live-log")
        after = self.log_lines()
        self.assertEqual(after[: len(earlier)], earlier)
        self.assertEqual(len(set(after)), len(after), "no line came twice")
        self.browser.press("x")
        self.wait_row("counter", ".job-note", lambda text: text == "press again to stop")
        self.assertEqual(self.row("counter", ".c-state"), "running")
        self.browser.press("x")
        self.wait_row("counter", ".c-state", lambda text: text == "cancelled", 15)
        self.browser.wait(
            "the end",
            "return document.querySelector('.log-state').textContent.startsWith('end of the run')",
        )

    def test_scrolling_up_stops_following(self) -> None:
        """The log opens at its end; scrolling up stops following and says so; a press goes on."""
        self.browser.size(1440, 420)
        self.open(self.url)
        if self.row("counter", ".c-state") != "running":
            self.press_in_row("counter", "Run")
        self.press_in_row("counter", "Log")
        self.browser.wait(
            "lines", "return document.querySelectorAll('.drawer .log-line').length > 12"
        )
        at_end = (
            "const l = document.querySelector('.log-lines');"
            "return l.scrollTop + l.clientHeight >= l.scrollHeight - 6"
        )
        self.assertTrue(self.browser.wait("the end of the log", at_end))
        self.browser.run("document.querySelector('.log-lines').scrollTop = 0")
        self.browser.wait("the button", "return !document.querySelector('.log-follow').hidden")
        self.browser.wait(
            "a count", "return /new line/.test(document.querySelector('.log-follow').textContent)"
        )
        self.assertEqual(
            self.browser.run("return document.querySelector('.log-lines').scrollTop"), 0
        )
        self.browser.click(".log-follow")
        self.assertTrue(self.browser.wait("the end again", at_end))
        self.browser.press("x", "x")
        self.wait_row("counter", ".c-state", lambda text: text != "running", 15)

    def test_pause_and_resume(self) -> None:
        """p pauses the selected job for an hour; undo resumes it."""
        self.open(self.url, "#job/backup")
        self.browser.wait("the drawer", "return !document.querySelector('.drawer').hidden")
        self.browser.press("p")
        self.wait_row("backup", ".c-state", lambda text: text == "paused")
        self.assertRegex(self.row("backup", ".job-note"), r"paused until \d\d:\d\d")
        paused = self.api.get("/jobs/backup")["paused"]
        self.assertEqual(paused["by"], "dashboard")
        self.browser.screenshot("paused")
        self.browser.run(
            "[...document.querySelectorAll('tr.job')].find(r => r.dataset.job === 'backup')"
            ".querySelector('.job-note .link').click()"
        )
        self.wait_row("backup", ".c-state", lambda text: text != "paused")
        self.assertIsNone(self.api.get("/jobs/backup")["paused"])

    def test_refusal_is_told_in_place(self) -> None:
        """A start that the daemon refuses shows its reason on the row."""
        self.open(self.url)
        self.open_row("legacy-export")
        self.browser.press("r")
        note = self.wait_row("legacy-export", ".job-note", lambda text: "refused" in text)
        self.assertIn("disabled", note)

    def test_hostile_text_stays_text(self) -> None:
        """Markup in names and output is shown, not run; control characters become marks."""
        if TARGET:
            self.api.run_once(HOSTILE_NAME)
        self.open(self.url)
        self.assertIn(HOSTILE_NAME, self.names())
        self.open_row(HOSTILE_NAME)
        self.browser.wait(
            "five lines", "return document.querySelectorAll('.drawer .log-line').length === 5"
        )
        lines = self.log_lines()
        self.assertEqual(lines[0], "<script>document.title='owned'</script>")
        self.assertEqual(lines[1], "cleared red after")
        self.assertEqual(lines[2], "turn \ufffd around")
        self.assertEqual(lines[3], "{{ 7*7 }} &lt;b&gt;")
        self.assertEqual(lines[4], "caf\ufffd \ufffd end")
        self.assertEqual(self.browser.text(".drawer-title"), HOSTILE_NAME)
        self.assertEqual(
            self.browser.run("return document.querySelectorAll('img, main script').length"), 0
        )
        self.assertNotIn(self.browser.run("return document.title"), ("1", "owned"))
        self.browser.screenshot("hostile")

    def test_odd_names_have_their_own_address(self) -> None:
        """A job with a space and a slash opens by deep link and answers with its own history."""
        if TARGET:
            self.api.run_once("name with space/slash")
        self.open(self.url, "#job/name%20with%20space%2Fslash/history")
        self.browser.wait("its history", "return document.querySelector('.drawer .numbers')")
        self.assertEqual(self.browser.text(".drawer-title"), "name with space/slash")

    def test_history_tells_what_else_a_run_left(self) -> None:
        """A run's row names processes that held its output, and how many lines were too long."""
        if TARGET:
            raise SkipTest("a real run that leaves such things takes too long")
        run = finished("success", time.time() - 5, 1.0, 0, None)
        left = [{"pid": 4711, "command": "<b>sleep"}, {"pid": 4712, "command": "tee"}]
        self.fake.find("backup").added.append({**run, "leftovers": left, "overlong_lines": 2})
        self.open(self.url, "#job/backup/history")
        self.browser.wait("its history", "return document.querySelector('.drawer .numbers')")
        row = self.browser.text(".drawer .plain tbody tr")
        self.assertIn("output held by <b>sleep (pid 4711), tee (pid 4712)", row)
        self.assertIn("2 over-long lines left out", row)

    def test_schedule_tab_and_why(self) -> None:
        """The schedule tab reads the schedule out and answers why a time was not selected."""
        self.open(self.url, "#job/rotate-logs/schedule")
        self.browser.wait(
            "next runs", "return document.querySelectorAll('.drawer .fires li').length === 8"
        )
        self.browser.run("document.querySelector('.why input').value = '2026-03-04T05:20'")
        self.press_button("Why?", ".drawer")
        self.browser.wait(
            "seven fields", "return document.querySelectorAll('.why-answer tr').length === 7"
        )
        self.assertIn("did not", self.browser.text(".why-answer"))

    def test_palette_finds_jobs_and_commands(self) -> None:
        """Ctrl K opens the palette; a few letters and Enter open a job."""
        self.open(self.url)
        self.browser.press("Control+k")
        self.browser.wait("the palette", "return document.querySelector('.palette-list li')")
        self.browser.type(".palette-input", "bcku")
        self.browser.screenshot("palette")
        self.browser.press("Enter")
        self.browser.wait_for("the job", lambda: self.browser.text(".drawer-title") == "backup")
        self.browser.press("?")
        self.browser.wait("the keys", "return document.querySelector('dialog .keys kbd')")
        self.browser.press("Escape")
        self.browser.wait("no dialog", "return !document.querySelector('dialog')")

    def test_every_view_draws(self) -> None:
        """Each drawing of the time panel, and each overlay, opens and shows something."""
        self.open(self.url)
        drawn = {
            "Upcoming": ".upcoming li",
            "Heat map": ".heat-names button",
            "Week": ".day",
            "Load": ".load-words h3",
            "Check": ".check-answer .fires li",
            "Slots": ".strip-row",
        }
        for title, proof in drawn.items():
            self.press_button(title, "#time")
            self.browser.wait(
                f"the view {title}", "return document.querySelector(arguments[0])", proof
            )
            self.browser.screenshot("view-" + title.lower().replace(" ", "-"))
        for key, proof in {"i": ".timeline", "m": ".log-pane", "w": ".wall-tile"}.items():
            self.browser.press(key)
            self.browser.wait(
                f"the overlay of {key}",
                "return document.querySelector('dialog ' + arguments[0])",
                proof,
            )
            self.browser.screenshot("overlay-" + key)
            self.browser.press("Escape")
            self.browser.wait("it closed", "return !document.querySelector('dialog')")
