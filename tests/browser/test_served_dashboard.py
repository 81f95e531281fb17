"""`fwtui serve` in headless Chromium: the page shows it, takes keys without a click, and says when it has ended."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
WAIT = 30.0  # seconds until something has gone wrong
BINARY = 2  # kind of a frame that holds what the terminal shows
BLANK = 10_000  # bytes of a picture of an empty page, at most

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture
def served() -> Iterator[tuple[str, psutil.Process]]:
    """Where a server for a lecture listens, and its process."""
    command = [sys.executable, "-P", "-m", "fwtui", "serve", "--port", "0", "lecture-tiles"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        assert found is not None
        yield found[0], psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(WAIT)


class Tab:
    """A page of a browser, by Chromium's own protocol; `heard` is what came down the page's web sockets, as text."""

    def __init__(self, socket: Any):
        self._socket, self._numbers = socket, itertools.count(1)
        self.heard = ""
        self.elsewhere: list[str] = []  # addresses that the page asked for

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while (told := await self._next()).get("id") != number:
            pass
        return told.get("result", {})

    async def value(self, expression: str) -> Any:
        return (await self.ask("Runtime.evaluate", expression=expression))["result"]["value"]

    async def _next(self) -> dict[str, Any]:
        told = await self._socket.receive_json(timeout=WAIT)
        if told.get("method") == "Network.webSocketFrameReceived":
            response = told["params"]["response"]
            if response["opcode"] == BINARY:
                shown = base64.b64decode(response["payloadData"]).decode("utf-8", "replace")
                self.heard += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
        elif told.get("method") == "Network.requestWillBeSent":
            self.elsewhere.append(told["params"]["request"]["url"])
        return told

    async def hear(self, words: str) -> None:
        """Wait for these words to be shown."""
        async with asyncio.timeout(WAIT):
            while words not in self.heard:
                await self._next()


async def visit(address: str, server: psutil.Process, profile: str) -> tuple[Tab, bytes]:
    command = [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,800"]
    browser = subprocess.Popen(
        [*command, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = Path(profile) / "DevToolsActivePort"
        async with asyncio.timeout(WAIT), aiohttp.ClientSession() as client:
            while not (port.exists() and len(lines := port.read_text().split()) > 1):
                await asyncio.sleep(0.1)
            async with client.get(f"http://127.0.0.1:{lines[0]}/json/list") as listed:
                page = next(one for one in json.loads(await listed.text()) if one["type"] == "page")
            async with client.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                await tab.ask("Network.enable")
                await tab.ask("Page.navigate", url=address)
                await tab.hear("1 Replay")
                await tab.hear("lecture-tiles")
                await tab.ask("Input.insertText", text="y")
                await tab.hear("read-only here")
                await tab.ask("Input.insertText", text="P")
                await tab.hear(" leaves")
                shot = await tab.ask("Page.captureScreenshot")
                server.children()[0].kill()
                async with asyncio.timeout(WAIT):
                    while "The program has ended" not in await tab.value("document.body.innerText"):
                        await asyncio.sleep(0.1)
                return tab, base64.b64decode(shot["data"])
    finally:
        browser.terminate()
        browser.wait(WAIT)


def test_a_browser_shows_the_dashboard_takes_keys_and_asks_no_other_machine(served: tuple[str, psutil.Process]) -> None:
    address, server = served
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        tab, picture = asyncio.run(visit(address, server, profile))
    assert len(picture) > BLANK
    assert tab.elsewhere and all(url.startswith((address, "data:", "blob:")) for url in tab.elsewhere)
