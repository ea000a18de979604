"""Controls a Chromium without a screen through its DevTools protocol, over a pair of pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Names of the browser on different systems; `make test` installs `chromium`.
NAMES = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # root cannot have a sandbox
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
)

#: Messages about a page's requests and output; other messages of the browser are ignored.
TOLD = (
    "Network.requestWillBeSent",
    "Log.entryAdded",
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
)


def find() -> str | None:
    """Returns the browser's path; None if no browser is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. `events` contains the messages listed in TOLD, in their order."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._from = to, os.fdopen(answers, "rb", buffering=0)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Attaches to a new page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the browser, and returns the browser's answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") in TOLD:
            self.events.append(message)

    def _next(self) -> dict[str, Any]:
        """Returns the browser's next message; a zero byte ends each message."""
        while b"\0" not in self._unread:
            part = self._from.read(1 << 20)
            assert part, "the browser has ended"
            self._unread += part
        message, self._unread = self._unread.split(b"\0", 1)
        return json.loads(message)

    def show(self, path: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Loads a file as a page on a screen of the given width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
        self.call("Page.navigate", url=path.as_uri())
        while (message := self._next()).get("method") != "Page.loadEventFired":
            self._note(message)

    def value(self, expression: str) -> Any:
        """Returns the value of an expression of JavaScript, evaluated in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"][
            "value"
        ]

    def picture(self, path: Path, *, part: str = "body", height: int | None = None) -> None:
        """Writes a PNG picture of the element that a selector finds, or of the element's upper
        part."""
        box = self.value(f"document.querySelector('{part}').getBoundingClientRect().toJSON()")
        size = {**{key: box[key] for key in ("x", "y", "width")}, "height": height or box["height"]}
        shot = {"clip": {**size, "scale": 1}, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **shot)["data"]))


@contextmanager
def page() -> Iterator[Page]:
    """Opens a page in a separate browser."""
    browser = find()
    assert browser
    its_input, to = os.pipe()
    answers, its_output = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [browser, *FLAGS, f"--user-data-dir={profile}"],
            preexec_fn=lambda: _place(its_input, its_output),
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        os.close(its_input)
        os.close(its_output)
        shown = Page(to, answers)
        try:
            shown.attach()
            yield shown
        finally:
            os.close(to)
            process.kill()
            process.wait()


def _place(its_input: int, its_output: int) -> None:
    """Moves the browser's descriptors to 3, where the browser reads messages, and to 4, where the
    browser writes messages."""
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (its_input, its_output)]
    for file, place in zip(high, (3, 4), strict=True):
        os.dup2(file, place)
