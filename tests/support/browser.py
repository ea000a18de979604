"""Evaluates JavaScript in a page of a Chromium without a screen."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from typing import Any

from tests.support.patience import wait_until

#: Names of the browser on different systems; `make test` installs `chromium`.
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",  # root cannot have a sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--no-first-run",
)
#: With --remote-debugging-pipe the browser reads messages from descriptor 3, and answers on 4.
PIPE = 'exec "$@" --remote-debugging-pipe 3<&0 4>&1'
#: The address of a page that has been loaded.
LOADED = "document.readyState == 'complete' && location.href"


def find() -> str | None:
    """Returns the browser's path; None if no browser is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def value(url: str, promise: str, *flags: str, width: int = 1100) -> Any:
    """Opens a page in a window of the given width, and returns the result of a promise in
    JavaScript, evaluated in the page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [str(find()), *FLAGS, f"--user-data-dir={profile}", *flags]
        with subprocess.Popen(
            ["sh", "-c", PIPE, "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as browser:
            try:
                size = {"width": width, "height": 900, "newWindow": True}
                opened = _call(browser, "Target.createTarget", url=url, **size)["result"]
                at = {"targetId": opened["targetId"], "flatten": True}
                session = _call(browser, "Target.attachToTarget", **at)["result"]["sessionId"]
                assert wait_until(lambda: _evaluated(browser, session, LOADED).get("value") == url)
                result = _evaluated(browser, session, promise)
                assert "value" in result, result
                return result["value"]
            finally:
                browser.kill()


def _evaluated(browser: subprocess.Popen[bytes], session: str, promise: str) -> dict[str, Any]:
    words = {"expression": promise, "awaitPromise": True, "returnByValue": True}
    answer = _call(browser, "Runtime.evaluate", session, **words)
    return answer.get("result", answer).get("result", answer)


def _call(
    browser: subprocess.Popen[bytes], method: str, session: str = "", **parameters: Any
) -> dict[str, Any]:
    """Calls a method of the browser, and returns the browser's answer. A zero byte ends each
    message. Messages without an id are no answers."""
    assert browser.stdin and browser.stdout
    message = {"id": 1, "method": method, "params": parameters}
    message |= {"sessionId": session} if session else {}
    browser.stdin.write(json.dumps(message).encode() + b"\0")
    browser.stdin.flush()
    answer: dict[str, Any] = {}
    while "id" not in answer:
        answer = json.loads(b"".join(iter(lambda: browser.stdout.read(1) or b"\0", b"\0")))
    return answer
