"""What the browser tests share: one browser, a fake daemon or a real one, the console watched."""

from __future__ import annotations

import atexit
import json
import os
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.browser.driver import DIRECT, Browser, missing
from tests.browser.fake_api import FakeDaemon

TARGET = os.environ.get("CRONSTABLE_BROWSER_TARGET", "")
HARMLESS = ("favicon", "/slots?since")

FIND_ROW = (
    "const r = [...document.querySelectorAll('tr.job')].find(r => r.dataset.job === arguments[0]);"
)

_shared: list[Browser] = []
_to_run: set[int] = set()
_stopped: set[str] = set()


def shared_browser() -> Browser:
    """Return the one browser of this test process, started on first use."""
    if not _shared:
        _shared.append(Browser())
    return _shared[0]


@atexit.register
def close_browser() -> None:
    """Close the shared browser, if there is one."""
    while _shared:
        _shared.pop().close()


class BrowserTestCase(SynchronousTestCase):
    """A test in a real browser; skipped with a reason where there is none."""

    fake_only = True
    """Whether the test needs the fake daemon and is skipped when a real one is the target."""
    expected_complaints: tuple[str, ...] = ()

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803
        super().__init__(methodName)
        _to_run.add(id(self))

    def run(self, result: Any) -> Any:
        """Run the test; the last one of those that were loaded closes the browser."""
        try:
            return super().run(result)
        finally:
            _to_run.discard(id(self))
            if not _to_run:
                close_browser()

    def setUp(self) -> None:
        reason = missing()
        if reason:
            raise SkipTest(reason)
        if TARGET and self.fake_only:
            raise SkipTest("needs the fake daemon")
        self.browser = shared_browser()
        self.browser.size(1440, 900)
        self.browser.media(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
        self.browser.open("about:blank")
        self.browser.complaints()

    def tearDown(self) -> None:
        harmless = (*HARMLESS, *self.expected_complaints, *_stopped)
        told = [
            text for text in self.browser.complaints() if not any(part in text for part in harmless)
        ]
        self.browser.open("about:blank")
        self.assertEqual(told, [], "the page complained in the console")

    def serve(self, **options: Any) -> FakeDaemon:
        """Start a fake daemon for this test."""
        fake = FakeDaemon(**options)
        _stopped.discard(fake.url)
        fake.__enter__()
        # What the page of an earlier test asked last may be told of as late as in the next test.
        self.addCleanup(_stopped.add, fake.url)
        self.addCleanup(fake.__exit__)
        return fake

    def open(self, url: str, hash_: str = "") -> None:
        """Open the page and wait until its table is there."""
        self.browser.open(url + hash_)
        self.browser.wait("the job table", "return document.querySelector('tr.job')")

    def names(self) -> list[str]:
        """Return the names of the rows in the table, in order."""
        found: list[str] = self.browser.run(
            "return [...document.querySelectorAll('tr.job')].map(r => r.dataset.job)"
        )
        return found

    def row(self, name: str, part: str) -> str:
        """Return the text of a part of a job's row."""
        found: str = self.browser.run(
            FIND_ROW + "const e = r && r.querySelector(arguments[1]); return e ? e.innerText : ''",
            name,
            part,
        )
        return found

    def open_row(self, name: str) -> None:
        """Press a job's row, which opens its drawer."""
        self.browser.run(FIND_ROW + "r.click()", name)

    def press_in_row(self, name: str, label: str) -> None:
        """Press the button of a job's row whose label starts so."""
        done = self.browser.run(
            FIND_ROW
            + "const b = r && [...r.querySelectorAll('.acts button')].find(b => !b.hidden &&"
            " b.getAttribute('aria-label').startsWith(arguments[1]));"
            "if (b) b.click(); return Boolean(b)",
            name,
            label,
        )
        self.assertTrue(done, f"{name} has no button {label}")

    def wait_row(
        self, name: str, part: str, test: Callable[[str], bool], seconds: float = 20
    ) -> str:
        """Wait until a part of a row satisfies a test; return its text."""
        found: list[str] = [""]

        def ready() -> bool:
            found[0] = self.row(name, part)
            return test(found[0])

        self.browser.wait_for(f"{part} of {name} (now {found[0]!r})", ready, seconds)
        return found[0]

    def wait_for_polls(self, fake: FakeDaemon) -> None:
        """Wait until the page has asked for the jobs twice more: what it was to send, it has."""
        asked = fake.hits["/jobs"]
        self.browser.wait_for("two polls", lambda: fake.hits["/jobs"] >= asked + 2)

    def wait_for_rest(self, selector: str) -> None:
        """Wait until an element has come to where it is going."""
        self.browser.wait(
            f"{selector} at rest",
            "const e = document.querySelector(arguments[0]);"
            "return e && e.getAnimations().every(a => a.playState === 'finished')",
            selector,
        )

    def log_lines(self) -> list[str]:
        """Return the lines in the open log."""
        found: list[str] = self.browser.run(
            "return [...document.querySelectorAll('.drawer .log-line')].map(l => l.textContent)"
        )
        return found

    def press_button(self, text: str, within: str = "body") -> None:
        """Press the first visible button with this text."""
        done = self.browser.run(
            "const b = [...document.querySelectorAll(arguments[1] + ' button')].find(b =>"
            " b.offsetParent && b.textContent.trim().startsWith(arguments[0]));"
            "if (b) b.click(); return Boolean(b)",
            text,
            within,
        )
        self.assertTrue(done, f"there is no button {text}")


class Api:
    """What a test itself asks a daemon."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        with DIRECT.open(self.url + path, timeout=10) as answer:
            return json.load(answer)

    def post(self, path: str) -> int:
        """Send an action and return the status."""
        request = urllib.request.Request(self.url + path, method="POST", data=b"")
        with DIRECT.open(request, timeout=30) as answer:
            return int(answer.status)

    def run_once(self, name: str) -> None:
        """Start a job and wait until it has finished."""
        before = len(self.get(f"/jobs/{quote(name, safe='')}/runs")["runs"])
        self.post(f"/jobs/{quote(name, safe='')}/start")
        for _ in range(200):
            if len(self.get(f"/jobs/{quote(name, safe='')}/runs")["runs"]) > before:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} did not finish")
