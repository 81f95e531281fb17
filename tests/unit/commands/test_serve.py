"""`fwtui serve`: accepted origins, number of visitors, accepted messages, and its end."""

import asyncio
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from processes import ROOT

from fwtui.__main__ import main
from fwtui.sessions.reader import SessionFile

pytest.importorskip("textual_serve")
aiohttp = pytest.importorskip("aiohttp")

WAIT = 30.0  # seconds that only a hang exceeds
MAX_MEMORY = 150_000_000  # bytes of a visitor's process


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["serve", *words]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1
    return told.err


def test_a_mistake_is_one_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} is not available: address already in use;" in refusal(capsys, "--port", str(port))
        with monkeypatch.context() as patch:
            patch.setattr(SessionFile, "lines", None)  # only the header of an offered session is read
            assert f"port {port} is" in refusal(capsys, "lecture-tiles", "--port", str(port))
    assert "port 70000 is outside 0 to 65535" in refusal(capsys, "--port", "70000")
    assert "there is no session 'nowhere'" in refusal(capsys, "nowhere")
    monkeypatch.delitem(sys.modules, "fwtui.commands.support.web_server", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.app_service", None)
    assert "web pages need textual-serve; run: " in (told := refusal(capsys)) and "fwtui[serve]" in told


@contextmanager
def serving(*words: str, descriptors: int = 0) -> Iterator[tuple[str, psutil.Process]]:
    """Yield a server and its address; it must end by a signal and print nothing to stderr."""

    def limit() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-P", "-m", "fwtui", "serve", "--port", "0", *words]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=limit if descriptors else None
    )
    try:
        assert server.stdout is not None
        told = server.stdout.readline()
        found = re.search(r"http://[^/]+/", told)
        assert found is not None and "read-only" in told
        yield found[0], psutil.Process(server.pid)
        server.terminate()
        assert server.wait(WAIT) == 128 + 15
        assert server.communicate() == ("", "")
    finally:
        server.kill()
        server.wait(WAIT)


async def processes(server: psutil.Process, count: int) -> None:
    async with asyncio.timeout(WAIT):
        while len(server.children(recursive=True)) != count:
            await asyncio.sleep(0.05)


async def ended(visit: Any) -> None:
    async with asyncio.timeout(WAIT):
        while not visit.closed:
            await visit.receive()


@asynccontextmanager
async def visiting(address: str, query: str = "width=120&height=40") -> AsyncIterator[Any]:
    """Yield a visit whose dashboard has started."""
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{address}ws?{query}") as visit:
        await shown(visit, b"Replay")
        yield visit


async def shown(visit: Any, words: bytes) -> None:
    seen = b""
    async with asyncio.timeout(WAIT):
        while words not in seen:
            seen += await visit.receive_bytes()


def status_of(address: str, request: bytes) -> int:
    """Return the status that the server answers to any bytes; 0 if nothing."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=WAIT) as connection:
        connection.sendall(request)
        told = connection.recv(1000)
    return int(told.split()[1]) if told.startswith(b"HTTP/") else 0


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", *headers, "Connection: close", "", "")).encode("latin-1")


HERE = "Host: HERE"  # where the server is
OF_STRANGERS = [
    (get("/", HERE), 200),
    (get("/", HERE, "Origin: http://HERE"), 200),
    *((get("/", host), 403) for host in ("Host: elsewhere.example", "Host: 127.0.0.1", "Host: [::1", "Host:")),
    *((get(path, HERE, "Origin: http://127.0.0.1:1"), 403) for path in ("/", "/ws", "/static/js/textual.js")),
    *((get("/", HERE, f"Origin: {other}"), 403) for other in ("null", "http://[::1", "https://HERE")),
    (get("/ws", HERE), 400),
    (get("/ws", HERE, "Upgrade: websocket", "Connection: upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: \xff"), 400),
    *((get(path, HERE), 404) for path in ("/static//etc/passwd", "/static/../../etc/passwd", "/static/%2e%2e/%2e%2e/etc/passwd")),
    *((get(f"/static/{name}", HERE), 404) for name in ("a" * 7000, "%00", "%ff" * 300, "a/" * 2000)),
    (get("/static/", HERE), 403),
    *((get(f"/?fontsize={size}", HERE), status) for size, status in (("%22onload=alert(1)", 200), ("9" * 5000, 200), ("", 200))),
    (get("/" + "a" * 20_000, HERE), 400),
    (get("/", HERE, "X: " + "a" * 20_000), 400),
    (b"GET / HTTP/1.1\r\nHost: HERE\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: HERE\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\nConnection: close\r\n\r\n123456789", 405),
    (b"POST / HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nxyz\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
]
# not JSON, not a message, nested too deeply, of another type, too long, not a number, not text
ODD_MESSAGES = ("", "[1]", "null", "[" * 30_000, '["stdin", 7]', '["stdin"]', '["stdin", "\\ud800"]', "x" * 70_000)
ODD_MESSAGES += ('["resize", {}]', '["resize", NaN]', '["resize", {"width": 1e999, "height": 1}]', "9" * 5000)


def test_requests_of_strangers_do_no_harm() -> None:
    with serving() as (address, server):
        here = urlsplit(address).netloc.encode()
        for request, status in OF_STRANGERS:
            assert status_of(address, request.replace(b"HERE", here)) == status, ascii(request)[:70]
        assert not server.children()


@pytest.mark.parametrize(
    "messages", [ODD_MESSAGES[:1], pytest.param(ODD_MESSAGES[1:], marks=pytest.mark.slow)], ids=["one", "others"]
)
def test_a_visitors_process_ends_with_visit_or_server_and_an_odd_message_ends_one_visit(messages: tuple[str, ...]) -> None:
    async def visit(address: str, server: psutil.Process) -> None:
        async with aiohttp.ClientSession() as client:
            async with client.get(address) as answer:
                assert answer.status == 200 and "default-src 'self'" in answer.headers["Content-Security-Policy"]
            for message in messages:
                async with client.ws_connect(f"{address}ws") as odd:
                    await odd.send_str(message)
                    await ended(odd)
                await processes(server, 0)
            async with visiting(address) as first:
                (visitor,) = server.children(recursive=True)
                assert visitor.cmdline()[3:6] == ["fwtui", "dashboard", "--read-only"], "no shell in between"
                visitor.kill()
                await ended(first)
            async with visiting(address) as other:
                await other.send_str('["stdin", "?"]')
                await shown(other, b"Keys and glossary")
                server.terminate()
                async with asyncio.timeout(WAIT):
                    while server.status() != psutil.STATUS_ZOMBIE:
                        await asyncio.sleep(0.05)
            assert not [one for one in psutil.process_iter(["ppid"]) if one.info["ppid"] == server.pid]

    with serving("lecture-tiles") as (address, server):
        asyncio.run(visit(address, server))


RESIZE = json.dumps(["stdin", "\x1b[48;9999999;30;1;1t"])
HUGE = {
    "wide": [json.dumps(["stdin", "\x1b[48;30;9999999;1;1t"])],
    "high": [RESIZE],
    "both, twice": [json.dumps(["stdin", f"\x1b[48;{side};{side};9;9t"]) for side in (9999999, 10**40)],
    "message": ['["resize", {"width": 1000000000, "height": 9999999}]'],
    "negative": ['["resize", {"width": -5, "height": 1000000000000000000000}]'],
    "paste": [json.dumps(["stdin", "\x1b[200~"]), *[json.dumps(["stdin", "x" * 60_000])] * 300],
    "keys": [json.dumps(["stdin", "jk" * 30_000])] * 20,
    "sizes": ['["resize", {"width": 1000, "height": 300}]', '["resize", {"width": 80, "height": 24}]'] * 20_000,
    "focus": ['["focus"]', '["blur"]'] * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("messages", HUGE.values(), ids=HUGE)
def test_a_visitors_process_stays_small(messages: list[str]) -> None:
    async def visit(address: str, server: psutil.Process) -> None:
        async with visiting(address, "width=99999999&height=40") as visit:
            (process,) = server.children(recursive=True)
            sending = asyncio.create_task(send(visit, messages))
            peak = 0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5.0):
                    while True:
                        peak = max(peak, process.memory_info().rss)
                        await visit.receive()
            assert peak < MAX_MEMORY and process.status() != psutil.STATUS_ZOMBIE and not visit.closed
            sending.cancel()

    async def send(visit: Any, messages: list[str]) -> None:
        for message in messages:
            await visit.send_str(message)

    with serving("lecture-tiles") as (address, server):
        asyncio.run(visit(address, server))


def test_slow_clients_are_cut_off_and_connections_and_visitors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from fwtui.commands.support import web_server

    monkeypatch.setattr(web_server, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(web_server, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(web_server, "MAX_VISITORS", 0)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    large = f"GET /static/js/textual.js HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    slow = (b"", head, head.replace(b"GET", b"POST") + b"Content-Length: 9\r\n\r\n{", large * 30)

    async def clients() -> None:
        serving = asyncio.create_task(web_server.WebServer(["false"], "127.0.0.1", port).run(listening))
        for _ in range(2):
            open_ones = [await asyncio.open_connection("127.0.0.1", port, limit=10) for _ in slow]
            for (_, writer), part in zip(open_ones, slow, strict=True):
                writer.write(part)
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b"", "one more than it takes"
            writer.close()
            await asyncio.sleep(0.5)
            for reader, writer in open_ones:
                try:
                    async with asyncio.timeout(WAIT):
                        while await reader.read(1 << 20):
                            pass
                except ConnectionError:
                    pass
                writer.close()
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/ws") as answer:
            assert answer.status == 503 and "places are taken" in await answer.text()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == signal.SIGTERM

    asyncio.run(clients())


@pytest.mark.parametrize("leaves", [True, False], ids=["the visitor leaves", "the visitor stays"])
def test_a_process_that_takes_no_input_holds_no_place(monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    from fwtui.commands.support import web_server

    monkeypatch.setattr(web_server, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(web_server, "QUIT_SECONDS", 0.2)
    # like a dashboard that is stuck, it reads nothing and ends when the server hangs up
    stuck = "import select; pipe = select.poll(); pipe.register(0, 0); pipe.poll()"
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    async def visit() -> None:
        serving = asyncio.create_task(web_server.WebServer([sys.executable, "-c", stuck], "127.0.0.1", port).run(listening))
        here = psutil.Process()
        before = len(here.children())
        async with aiohttp.ClientSession() as client, client.ws_connect(f"http://127.0.0.1:{port}/ws") as page:
            await processes(here, before + 1)
            for _ in range(10):  # more than a pipe and the buffers hold
                await page.send_str(json.dumps(["stdin", "x" * 60_000]))
            if not leaves:
                await ended(page)
        await processes(here, before)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == signal.SIGTERM

    asyncio.run(visit())


def test_without_descriptors_it_prints_nothing_and_goes_on() -> None:
    with serving(descriptors=24) as (address, _):
        where = urlsplit(address)
        crowd = [socket.create_connection((where.hostname, where.port)) for _ in range(40)]
        with socket.create_connection((where.hostname, where.port)) as last:
            last.settimeout(1.5)
            with pytest.raises(TimeoutError):
                last.recv(1)
        for one in crowd:
            one.close()
        assert status_of(address, get("/", f"Host: {where.netloc}")) == 200
