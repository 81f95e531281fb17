"""A headless Chromium, driven by the WebDriver protocol; without one the tests are skipped."""

import base64
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900")
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "escape": "\ue00c", "tab": "\ue004"}
PATIENCE = 30.0  # seconds that only a hang exceeds


class Browser:
    """One window of Chromium."""

    def __init__(self, address: str):
        self._address = address
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS], "prefs": {}}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._session = self._ask("POST", "/session", capabilities={"alwaysMatch": wanted})["sessionId"]

    def _ask(self, method: str, path: str, **said: Any) -> Any:
        body = json.dumps(said).encode() if method == "POST" else None
        request = urllib.request.Request(self._address + path, body, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def _do(self, path: str, method: str = "POST", **said: Any) -> Any:
        return self._ask(method, f"/session/{self._session}{path}", **said)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load the page from the disk and wait until its script has started or failed."""
        self._do("/url", url="about:blank")
        self.show(page, fragment)
        self.wait("document.body.dataset.ready || document.getElementById('message').textContent")

    def visit(self, address: str) -> None:
        self._do("/url", url=address)

    def show(self, file: Path, fragment: str = "") -> None:
        self.visit(file.as_uri() + fragment)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self._do("/execute/sync", script=f"return ({script})", args=[])

    def wait(self, condition: str) -> Any:
        until = time.monotonic() + PATIENCE
        while not (found := self.run(condition)):
            assert time.monotonic() < until, f"{condition} never came true"
            time.sleep(0.02)
        return found

    def press(self, *keys: str) -> None:
        pressed = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("/actions", actions=[{"type": "key", "id": "keyboard", "actions": pressed}])

    def click(self, selector: str) -> None:
        """Click the centre of that element."""
        found = self._do("/element", using="css selector", value=selector)
        moves: list[dict[str, Any]] = [{"type": "pointerMove", "origin": found, "x": 0, "y": 0}]
        moves += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._do("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def resize(self, width: int, height: int) -> None:
        self._do("/window/rect", width=width, height=height)

    def before(self, script: str) -> None:
        """Run this script in every page before the page's scripts."""
        self._do("/goog/cdp/execute", cmd="Page.addScriptToEvaluateOnNewDocument", params={"source": script})

    def view(self, width: int = 0, height: int = 0) -> None:
        """Set the size of the viewport, such as a phone's; without arguments that of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 0, "mobile": False} if width else {}
        command = "Emulation.setDeviceMetricsOverride" if width else "Emulation.clearDeviceMetricsOverride"
        self._do("/goog/cdp/execute", cmd=command, params=size)

    def prefer(self, **features: str) -> None:
        """Set media features such as prefers_reduced_motion; without arguments the defaults of the machine."""
        told = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._do("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": told})

    def prefer_print(self, wanted: bool) -> None:
        self._do("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"media": "print" if wanted else ""})

    def said(self) -> list[str]:
        """Return errors and blocked requests on the console since the last call."""
        return [entry["message"] for entry in self._do("/se/log", type="browser")]

    def picture(self) -> bytes:
        return base64.b64decode(self._do("/screenshot", method="GET"))

    def close(self) -> None:
        self._do("", method="DELETE")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and chromedriver")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{address}/status", timeout=5)
                break
            except OSError:
                assert time.monotonic() < until and driver.poll() is None, "chromedriver does not answer"
                time.sleep(0.05)
        window = Browser(address)
        yield window
        window.close()
    finally:
        driver.terminate()
        driver.wait(10)


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, int]]:
    """Yield the address and the process of a server."""
    command = [sys.executable, "-P", "-m", "fwtui", "serve", "--port", "0", *words]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[2])
    try:
        assert server.stdout is not None
        (address,) = (word for word in server.stdout.readline().split() if "://" in word)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(30)
