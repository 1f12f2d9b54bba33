"""Headless Chromium controlled by its DevTools protocol over a pipe: one process for all pages.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON, each terminated by a zero byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

COMMAND = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
PATIENCE = 120
"""Seconds to wait for an answer, on a shared machine."""
DRAWN = "document.documentElement.dataset.charts === 'drawn'"
LOCAL = ("file:", "data:", "blob:", "about:")


class Chromium:
    """A browser without network access."""

    def __init__(self, profile: Path) -> None:
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        options = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        )
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{read} 4>&{write}',
                "bash",
                str(COMMAND),
                *options,
            ],
            pass_fds=(read, write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def ask(
        self, method: str, session: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Send a command and return its answer; events that arrive before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.hear()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def hear(self) -> dict[str, Any]:
        """Return the next message; events are kept."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select(
                [self._read], [], [], max(0.0, until - time.monotonic())
            )
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def close(self) -> None:
        """Close the browser."""
        os.close(self._write)
        self._process.wait(PATIENCE)
        os.close(self._read)


class Tab:
    """One tab.

    Attributes:
        complaints: Console messages and page errors since the last visit.
        requests: Addresses requested since then that are not on the local disk.
    """

    def __init__(self, browser: Chromium) -> None:
        self.browser = browser
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.ask(
            "Target.attachToTarget", targetId=target, flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self.browser.ask(method, self._session, **parameters)

    def screen(
        self, width: int = 1280, *, dark: bool = False, paper: bool = False
    ) -> None:
        """Emulate a screen of this width, light or dark, or paper."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask(
            "Emulation.setEmulatedMedia",
            media="print" if paper else "screen",
            features=[scheme],
        )

    def visit(self, page: Path, fragment: str = "", until: str = "true") -> None:
        """Load a page, even if it is open already, and wait until the expression `until` is true."""
        self._open("about:blank")
        self._open(page.resolve().as_uri() + fragment)
        self.wait(until)

    def _open(self, address: str) -> None:
        self.browser.events.clear()
        loader = self.ask("Page.navigate", url=address)["loaderId"]
        loaded = {"name": "load", "loaderId": loader}
        while not any(
            loaded.items() <= event["params"].items() for event in self.browser.events
        ):
            self.browser.hear()

    def wait(self, until: str) -> None:
        """Wait until an expression is true."""
        self.run(
            f"new Promise((done) => {{ const look = () => ({until}) ? done(true) : setTimeout(look, 20);"
            f" look(); }})"
        )

    def wait_over_loads(self, until: str) -> None:
        """Wait until an expression is true on a page that loads itself again."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            try:
                if self.run(until):
                    return
            except AssertionError:  # between two documents
                continue
        raise AssertionError(f"never true: {until}")

    def run(self, expression: str) -> Any:
        """Value of an expression; a promise is awaited."""
        answer = self.ask(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def pdf(self) -> bytes:
        """The page as printed on A4."""
        return base64.b64decode(
            self.ask("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        )

    def picture(self, file: Path) -> None:
        """The whole page as a PNG file."""
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and uncaught exceptions."""
        found = []
        for event in self.browser.events:
            method, told = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and told["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(str(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in (
                "error",
                "warning",
            ):
                found.append(
                    f"{told['entry']['text']} ({told['entry'].get('url', '')})"
                )
        return found

    @property
    def requests(self) -> list[str]:
        """Requested addresses that are not local."""
        told = [
            e["params"]
            for e in self.browser.events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [
            each["request"]["url"]
            for each in told
            if not each["request"]["url"].startswith(LOCAL)
        ]


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
AXE = CACHE / "scalestudy/axe/node_modules/axe-core/axe.min.js"
"""Where `environments/test-tools.sh` puts axe-core."""


def barriers(tab: Tab) -> list[str]:
    """Violations of WCAG 2.2 AA and of best practice that axe-core finds, each with its elements.

    The inside of drawings is excluded: they are images with a name, and axe-core checks nothing else in them.
    """
    tab.run(AXE.read_text() + ";null")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = tab.run(
        f"axe.run({{exclude: ['.chart svg']}}, {{runOnly: {json.dumps(tags)}, resultTypes: ['violations']}})"
    )
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
