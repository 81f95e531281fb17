"""`fwtui serve`: who is let in, how many, and how it ends."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fwtui.__main__ import main
from fwtui.sessions.reader import SessionFile

pytest.importorskip("textual_serve")
aiohttp = pytest.importorskip("aiohttp")

ROOT = Path(__file__).resolve().parents[3]
WAIT = 30.0  # seconds until something has gone wrong


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["serve", *words]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1
    return told.err


def test_a_mistake_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} of '127.0.0.1' is not available: address already in use;" in refusal(capsys, "--port", str(port))
        with monkeypatch.context() as patch:
            patch.setattr(SessionFile, "chunks", None)  # of a session that it offers, only the header is read
            assert f"port {port} of" in refusal(capsys, "lecture-tiles", "--port", str(port))
    assert "port 70000 is outside 0 to 65535" in refusal(capsys, "--port", "70000")
    assert "'no.such.invalid' is not an address of this machine" in refusal(capsys, "--host", "no.such.invalid")
    assert "0 visitors are outside 1 to 100" in refusal(capsys, "--visitors", "0")
    assert "there is no session 'nowhere'" in refusal(capsys, "nowhere")
    assert "leave the names out" in refusal(capsys, "lecture-tiles", "--allow-runs")
    monkeypatch.delitem(sys.modules, "fwtui.commands.support.web_server", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.app_service", None)
    assert "web pages need textual-serve; run: " in (told := refusal(capsys)) and "fwtui[serve]" in told


async def visits(address: str, server: psutil.Process) -> None:
    async def children(count: int) -> None:
        async with asyncio.timeout(WAIT):
            while len(server.children(recursive=True)) != count:
                await asyncio.sleep(0.05)

    async with aiohttp.ClientSession() as client:
        for headers in ({"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}):
            for path in ("", "ws"):
                async with client.get(address + path, headers=headers) as answer:
                    assert answer.status == 403
        async with client.get(address) as answer:
            assert answer.status == 200 and "https://" not in await answer.text()
        async with client.ws_connect(f"{address}ws?width=100000&height=30") as first:
            shown = b""
            async with asyncio.timeout(WAIT):
                while b"Replay" not in shown:
                    shown += await first.receive_bytes()
            await children(1)
            (visitor,) = server.children()
            assert visitor.cmdline()[3:6] == ["fwtui", "dashboard", "--read-only"], "no shell in between"
            async with client.get(address) as answer:
                assert answer.status == 503 and "All 1 places are taken" in await answer.text()
            async with client.ws_connect(f"{address}ws") as second:
                message = await second.receive(timeout=WAIT)
                assert message.type is aiohttp.WSMsgType.CLOSE and "places are taken" in message.extra
            await first.send_str("this is no message of the page")
            async with asyncio.timeout(WAIT):
                while (await first.receive()).type is aiohttp.WSMsgType.BINARY:
                    pass
        await children(0)
        async with client.ws_connect(f"{address}ws"):  # there is room again
            await children(1)
            server.terminate()
            await children(0)


def test_a_visitor_gets_a_process_that_ends_with_the_visit_and_with_the_server() -> None:
    command = [sys.executable, "-P", "-m", "fwtui", "serve", "--port", "0", "--visitors", "1", "lecture-tiles"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        told = server.stdout.readline()
        assert told.count(". ") == 0 and "read-only" in told and "for this machine alone" in told
        found = re.search(r"http://127\.0\.0\.1:\d+/", told)
        assert found is not None
        asyncio.run(visits(found[0], psutil.Process(server.pid)))
        assert server.wait(WAIT) == 128 + 15
        assert "Traceback" not in server.communicate()[1]
    finally:
        server.kill()
        server.wait(WAIT)
