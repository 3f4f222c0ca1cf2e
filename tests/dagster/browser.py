"""A headless Chromium, told what to do through its DevTools: go, look, click, take a picture."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from websockets.sync.client import connect

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
VISIBLE = """
[...document.querySelectorAll(%s)].filter(
  e => e.offsetParent !== null && (e.innerText || '').trim().startsWith(%s))
"""


def chromium() -> str:
    """The browser's program; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium, and run it again")
    return found


class Browser:
    """One window of one browser."""

    def __init__(self, folder: Path, width: int = 1700, height: int = 1100) -> None:
        """Start it with a profile of its own in a folder."""
        profile = folder / "profile"
        self._at_exit = ExitStack()
        process = subprocess.Popen(
            [
                chromium(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._at_exit.callback(process.wait, 30)
        self._at_exit.callback(process.terminate)
        with ExitStack() as if_it_fails:
            if_it_fails.push(self._at_exit)
            self._socket = self._at_exit.enter_context(connect(self._page(profile), max_size=None))
            self._numbers = count(1)
            self._ask("Page.enable")
            if_it_fails.pop_all()

    @staticmethod
    def _page(profile: Path) -> str:
        """Where the one page of the browser listens, once it is up."""
        told = profile / "DevToolsActivePort"
        deadline = time.monotonic() + 90
        while not told.exists() or not told.read_text().strip():
            assert time.monotonic() < deadline, "Chromium did not start"
            time.sleep(0.2)
        port = told.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
            pages = [each for each in json.load(answer) if each["type"] == "page"]
        return str(pages[0]["webSocketDebuggerUrl"])

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._at_exit.close()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=120))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def go(self, url: str) -> None:
        """Open a page; what is on it comes later."""
        self._ask("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What an expression is, in the page."""
        found = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    def text(self) -> str:
        """All that can be read on the page."""
        return str(self.value("document.body ? document.body.innerText : ''"))

    def wait(self, script: str, what: str, seconds: float = 120) -> Any:
        """Wait until an expression is true, and give what it is."""
        deadline = time.monotonic() + seconds
        while not (found := self.value(script)):
            if time.monotonic() > deadline:
                pytest.fail(f"{what} is not on the page, which says:\n{self.text()[:3000]}")
            time.sleep(0.5)
        return found

    def wait_for(self, *words: str, seconds: float = 120) -> None:
        """Wait until all of some words can be read."""
        for word in words:
            text = "(document.body ? document.body.innerText : '')"
            self.wait(f"{text}.includes({json.dumps(word)})", repr(word), seconds)

    def click(self, word: str, what: str = "button, a, [role=button], [role=tab]") -> None:
        """Click the first thing that begins with a word."""
        found = VISIBLE % (json.dumps(what), json.dumps(word))
        self.wait(f"({found}).length > 0", f"something to click that says {word!r}")
        self.value(f"({found})[0].click()")

    def settle(self) -> None:
        """Let what is drawn move into its place, and buttons learn what they are for."""
        time.sleep(2)

    def picture(self, file: Path) -> None:
        """Keep what the window shows."""
        self.settle()
        shown = self._ask("Page.captureScreenshot", format="png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(shown["data"]))
