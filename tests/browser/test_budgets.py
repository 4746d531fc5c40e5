"""The page with a thousand jobs: size, time to use, frames, memory; and on a phone."""

from __future__ import annotations

import time

from cronstable.web.dashboard import Dashboard
from tests.browser.base import BrowserTestCase

WATCH = """
window.longTasks = []; window.frameGaps = [];
new PerformanceObserver(list => { for (const e of list.getEntries()) longTasks.push(e.duration); })
  .observe({entryTypes: ['longtask']});
let last = 0;
const frame = t => { if (last) frameGaps.push(t - last); last = t; requestAnimationFrame(frame); };
requestAnimationFrame(frame);
"""
# Other work on the machine must not fail the page: the best of a few measurements counts.
TRIES = 3


class SizeTests(BrowserTestCase):
    """What is sent."""

    def test_one_document_of_less_than_300_kilobytes(self) -> None:
        """The page is one document under 300 KB; the browser loads nothing but it and the API."""
        headers, body = Dashboard.load().document()
        self.assertLess(len(body), 300_000)
        self.open(self.serve().url)
        loaded = self.browser.run(
            "return performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)"
        )
        api = (
            "/jobs",
            "/whoami",
            "/node",
            "/cluster",
            "/pools",
            "/slots",
            "/version",
            "/job-set-id",
            "/dags",
            "/state",
        )
        self.assertEqual([path for path in loaded if not path.startswith(api)], [])


class ThousandJobsTests(BrowserTestCase):
    """A thousand jobs, all of which change each second."""

    def setUp(self) -> None:
        super().setUp()
        self.fake = self.serve(jobs=1000, churn=True)
        self.fake.job_list()
        self.url = self.fake.url
        self.script = self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        self.addCleanup(
            self.browser.devtools,
            "Page.removeScriptToEvaluateOnNewDocument",
            identifier=self.script["identifier"],
        )

    def test_painted_and_usable_in_time(self) -> None:
        """First paint comes within 300 ms, a usable table of 1,000 jobs within a second."""

        def load() -> tuple[float, float]:
            self.browser.open("about:blank")
            self.browser.open(self.url)
            usable = self.browser.wait(
                "a usable page",
                "const m = performance.getEntriesByName('usable')[0]; return m && m.startTime",
            )
            paint = self.browser.run(
                "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
            )
            return float(paint), float(usable)

        found = []
        for _ in range(2 * TRIES):
            found.append(load())
            if found[-1][0] < 300 and found[-1][1] < 1000:
                return
        self.fail(f"first paint and a usable page after {found} ms")

    def worst(self, seconds: float) -> float:
        """Return the longest task or gap between frames within some seconds, in milliseconds."""
        self.browser.run("longTasks.length = 0; frameGaps.length = 0")
        time.sleep(seconds)
        tasks, gaps = self.browser.run("return [longTasks, frameGaps]")
        return max(0.0, *(float(length) for length in (*tasks, *gaps)))

    def test_no_slow_frame_while_all_change(self) -> None:
        """Over seconds of updates no task and no gap between frames reaches 50 ms."""
        self.open(self.url)
        time.sleep(1.5)
        found = []
        for _ in range(4 * TRIES):
            before = self.fake.hits["/jobs"]
            found.append(round(self.worst(2.6)))
            self.assertGreater(self.fake.hits["/jobs"], before + 1, "the page has polled")
            if found[-1] < 50:
                return
        self.browser.open(self.fake.url + "blank")
        idle = max(self.worst(2.6) for _ in range(TRIES))
        # What a busy machine does to a page that does nothing is not the work of this one.
        self.assertLess(min(found), max(50, 1.5 * idle), f"{found} ms; idle {idle:.0f} ms")

    def test_only_rows_near_the_window_exist(self) -> None:
        """Of 1,000 rows only those near the window exist; scrolling brings the others."""
        self.open(self.url)
        few = self.browser.run("return document.querySelectorAll('tr.job').length")
        self.assertLess(few, 80)
        self.assertEqual(
            self.browser.run(
                "return document.querySelector('.jobs-table').getAttribute('aria-rowcount')"
            ),
            "1000",
        )
        self.browser.run("scrollTo(0, document.body.scrollHeight)")
        self.browser.wait(
            "the last row",
            "return [...document.querySelectorAll('tr.job')]"
            ".some(r => r.dataset.job.startsWith('tenant-0999'))",
        )
        self.assertLess(self.browser.run("return document.querySelectorAll('tr.job').length"), 80)
        self.browser.screenshot("thousand")

    def test_memory_stays_flat(self) -> None:
        """Seventy updates of all jobs leave no more nodes and little more heap behind."""
        self.open(self.url)
        self.browser.devtools("Performance.enable")
        self.browser.devtools("HeapProfiler.enable")

        def poll() -> None:
            before = self.fake.hits["/jobs"]
            self.browser.press("g")
            self.browser.wait_for("another poll", lambda: self.fake.hits["/jobs"] > before)

        def measured() -> tuple[float, float]:
            poll()
            self.browser.devtools("HeapProfiler.collectGarbage")
            found = {
                one["name"]: one["value"]
                for one in self.browser.devtools("Performance.getMetrics")["metrics"]
            }
            return found["JSHeapUsedSize"], found["Nodes"]

        def update(times: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
            """Return heap and nodes a few times after so many updates: one may be under way."""
            for _ in range(times):
                poll()
            heaps, nodes = zip(*(measured() for _ in range(5)), strict=True)
            return heaps, nodes

        heaps, nodes = update(20)
        later_heaps, later_nodes = update(40)
        self.assertLess(min(later_nodes), max(nodes) * 1.1 + 100)
        self.assertLess(min(later_heaps), max(heaps) * 1.25 + 1_000_000)


class PhoneTests(BrowserTestCase):
    """A window of 390 pixels."""

    def setUp(self) -> None:
        super().setUp()
        self.browser.size(390, 844, phone=True)
        self.url = self.serve().url

    def test_cards_and_one_hour(self) -> None:
        """Nothing is wider than the screen, jobs are cards, the strip spans an hour."""
        self.open(self.url)
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.assertEqual(
            self.browser.run("return getComputedStyle(document.querySelector('tr.job')).display"),
            "grid",
        )
        self.assertEqual(
            self.browser.run("return getComputedStyle(document.querySelector('thead')).display"),
            "none",
        )
        self.assertEqual(
            self.browser.run(
                "const s = document.querySelector('[aria-label^=Span] [aria-pressed=true]');"
                "return s.textContent"
            ),
            "1 h",
        )
        self.browser.screenshot("phone")
        self.browser.run("document.querySelector('#jobs').scrollIntoView()")
        self.browser.screenshot("phone-cards")

    def test_drawer_is_a_sheet(self) -> None:
        """The drawer comes from below, as wide as the screen, with buttons for a thumb."""
        self.open(self.url, "#job/import-orders")
        self.browser.wait(
            "lines", "return document.querySelectorAll('.drawer .log-line').length > 20"
        )
        self.wait_for_rest(".drawer")
        box = self.browser.run(
            "const b = document.querySelector('.drawer').getBoundingClientRect();"
            "return [b.left, b.width, b.bottom, b.top]"
        )
        self.assertEqual(box[:3], [0, 390, 844])
        self.assertGreater(box[3], 40)
        low = self.browser.run(
            "return Math.min(...[...document.querySelectorAll('.drawer-acts .button')]"
            ".filter(b => b.offsetParent).map(b => b.offsetHeight))"
        )
        self.assertGreaterEqual(low, 40)
        self.browser.screenshot("phone-sheet")


class LooksTests(BrowserTestCase):
    """Dark, and without motion."""

    def test_dark_follows_the_system_and_can_be_chosen(self) -> None:
        """The page is dark where the system is; T turns it round and it stays so."""
        self.browser.media(prefers_color_scheme="dark")
        self.open(self.serve().url)
        theme = "return document.documentElement.dataset.theme"
        self.assertEqual(self.browser.run(theme), "dark")
        self.browser.screenshot("dark")
        self.browser.press("Shift+T")
        self.browser.wait("light", theme + " === 'light'")

    def test_reduced_motion(self) -> None:
        """Where the system asks for less motion nothing spins and nothing slides."""
        self.browser.media(prefers_reduced_motion="reduce")
        self.open(self.serve().url)
        self.assertEqual(
            self.browser.run("return document.documentElement.dataset.motion"), "reduced"
        )
        self.assertEqual(
            self.browser.run(
                "return getComputedStyle(document.querySelector('.icon.spin')).animationName"
            ),
            "none",
        )
