"""A headless Chromium that is driven through its pipe, with the DevTools protocol: one process for many pages."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tool_requirements import is_installed, tool

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
]
PATIENCE = 60.0
"""Seconds to wait for a page: machines are shared."""

CUT_LABELS = """
[...document.querySelectorAll('.chart svg')].flatMap((svg) => {
  const around = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((one) => one.textContent.trim()).filter((one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    const over = [around.left - left, right - around.right, around.top - top, bottom - around.bottom];
    return Math.max(...over) > 0.5;
  }).map((one) => `${svg.closest('.chart').id}: ${one.textContent}`);
})
"""
"""Words of a report's charts that reach beyond their chart."""


class Chromium:
    """The browser with one page; `width`, `dark` and the like hold until they are changed."""

    def __init__(self, program: str, profile: Path) -> None:
        reads_commands, self._commands = os.pipe()
        self._answers, writes_answers = os.pipe()

        def as_three_and_four() -> None:
            # Far ones first: one of the pipes may be 3 or 4 itself.
            commands, answers = os.dup(reads_commands), os.dup(writes_answers)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=as_three_and_four,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads_commands)
        os.close(writes_answers)
        self._number, self._rest, self._session = 0, b"", ""
        self.console: list[str] = []
        self._loaded, self._address = False, ""
        (page,) = (item for item in self.call("Target.getTargets")["targetInfos"] if item["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give the browser a command and return its answer."""
        self._number += 1
        output = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            output["sessionId"] = self._session
        os.write(self._commands, json.dumps(output).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._answers, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(
                " ".join(str(item.get("value", item.get("description"))) for item in parameters["args"])
            )
        elif method == "Runtime.exceptionThrown":
            self.console.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))

    def look(self, width: int = 1280, height: int = 1600, dark: bool = False, scripts: bool = True) -> None:
        """Set how pages are shown from now on."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, page: Path | str, fragment: str = "", ready: str = "true") -> None:
        """Load a page, a file or an address of this machine, from nothing, and wait until `ready` holds in it."""
        address = page if isinstance(page, str) else page.resolve().as_uri()
        again = address == self._address  # then a fragment alone would load nothing
        self._address = address
        for url in (*["about:blank"] * again, f"{address}{fragment}"):
            self.console, self._loaded = [], False
            self.call("Page.navigate", url=url)
            while not self._loaded:
                self._next()
        self.wait(ready)

    def wait(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"never: {condition}; console: {self.console}"
            time.sleep(0.02)

    def run(self, expression: str) -> Any:
        """The value, plain or promised, of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, named as in JavaScript's events."""
        codes = {
            "Tab": 9,
            "Enter": 13,
            "Escape": 27,
            "End": 35,
            "Home": 36,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
        }
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes.get(key, 40),
                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}),
            )

    def click(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window and click."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, file: Path, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        file.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {**size, "scale": 1}}

    def close(self) -> None:
        """End the browser."""
        os.close(self._commands)
        os.close(self._answers)
        self._process.terminate()
        self._process.wait(10)


@contextmanager
def chromium() -> Iterator[Chromium]:
    """The browser; without one the test skips, or fails where CI says that none is missing."""
    program = tool(next(filter(is_installed, NAMES), NAMES[0]), "it opens pages for this test")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
