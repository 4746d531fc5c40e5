"""
A headless Chromium driven over WebDriver, with nothing but the standard library.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    # A page that was left is gone at once, and asks nothing more.
    "--disable-features=BackForwardCache",
    "--force-color-profile=srgb",
)
KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Control": "\ue009",
    "Down": "\ue015",
    "Up": "\ue013",
    "Shift": "\ue008",
}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str:
    """Return why no browser can be driven here, or an empty text."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return ""


class BrowserError(Exception):
    """The browser could not do what it was asked, or an expectation was not met in time."""


class Browser:
    """One browser process with one window; call L{close} when done."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="cronstable-browser-")
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._session = ""
        try:
            self._base = f"http://127.0.0.1:{self._announced_port()}"
            self._session = self._call("POST", "/session", self._wanted())["sessionId"]
        except BaseException:
            self.close()
            raise

    def _wanted(self) -> dict[str, Any]:
        options = {
            "binary": shutil.which("chromium"),
            "args": [*FLAGS, f"--user-data-dir={self._profile}", "--window-size=1440,900"],
        }
        match = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        return {"capabilities": {"alwaysMatch": match}}

    def _announced_port(self) -> int:
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            if "successfully on port" in line:
                return int(line.rsplit("port", 1)[1].strip(" .\n"))
        raise BrowserError("chromedriver ended before it listened")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path,
            data=data,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with DIRECT.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise BrowserError(f"{said['error']}: {said['message'][:400]}") from None

    def _of_session(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, f"/session/{self._session}{path}", body)

    def close(self) -> None:
        """End the browser and remove its profile."""
        try:
            if self._session:
                self._call("DELETE", f"/session/{self._session}")
        except (BrowserError, OSError):
            pass
        self._driver.terminate()
        self._driver.wait(10)
        if self._driver.stdout is not None:
            self._driver.stdout.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, url: str) -> None:
        """Go to an address and wait for the document."""
        self._of_session("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a function in the page and return what it returns."""
        return self._of_session(
            "POST", "/execute/sync", {"script": script, "args": list(arguments)}
        )

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Run an async function body in the page and return what it resolves to."""
        wrapped = (
            "const given = [...arguments]; const done = given.pop();"
            f"(async (...args) => {{ {script} }})(...given)"
            ".then(done, (e) => done({failed: String(e)}));"
        )
        return self._of_session(
            "POST", "/execute/async", {"script": wrapped, "args": list(arguments)}
        )

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._of_session("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def wait(self, what: str, script: str, *arguments: Any, seconds: float = 20.0) -> Any:
        """Return the first truthy result of a script, or fail naming what never came."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.run(script, *arguments)
            if found:
                return found
            if time.monotonic() > deadline:
                raise BrowserError(f"waited {seconds} s for {what}")
            time.sleep(0.04)

    def wait_for(self, what: str, ready: Callable[[], Any], seconds: float = 20.0) -> Any:
        """Return the first truthy result of a function of the test itself."""
        deadline = time.monotonic() + seconds
        while True:
            found = ready()
            if found:
                return found
            if time.monotonic() > deadline:
                raise BrowserError(f"waited {seconds} s for {what}")
            time.sleep(0.04)

    def find(self, selector: str) -> str:
        """Return the id of the first element that a CSS selector matches."""
        found: str = self._of_session(
            "POST", "/element", {"using": "css selector", "value": selector}
        )[ELEMENT]
        return found

    def click(self, selector: str) -> None:
        """Click an element as a person would: it must be visible and not covered."""
        self._of_session("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element; keys by name in C{KEYS} as they are."""
        self._of_session("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys one after another; C{"Control+k"} holds the first one."""
        actions: list[dict[str, str]] = []
        for key in keys:
            names = key.split("+") if len(key) > 1 else [key]
            values = [KEYS.get(name, name) for name in names]
            actions += [{"type": "keyDown", "value": value} for value in values]
            actions += [{"type": "keyUp", "value": value} for value in reversed(values)]
        self._of_session(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]}
        )

    def text(self, selector: str) -> str:
        """Return the visible text of the first match, or an empty one."""
        found: str = self.run(
            "const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector
        )
        return found

    def size(self, width: int, height: int, phone: bool = False) -> None:
        """Give the page a window of this many CSS pixels."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def media(self, **features: str) -> None:
        """Set media features such as C{prefers-color-scheme} (underscores for hyphens)."""
        listed = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=listed)

    def complaints(self) -> list[str]:
        """Return warnings and errors of the console since the last call."""
        entries = self._of_session("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, name: str) -> Path | None:
        """Save what is on the screen below C{$CRONSTABLE_SCREENSHOTS}, where that is set."""
        directory = os.environ.get("CRONSTABLE_SCREENSHOTS")
        if not directory:
            return None
        path = Path(directory) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._of_session("GET", "/screenshot")))
        return path
