"""`fwtui serve`: who is let in, how many, and how it ends."""

import asyncio
import json
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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
            patch.setattr(SessionFile, "lines", None)  # of a session that it offers, only the header is read
            assert f"port {port} of" in refusal(capsys, "lecture-tiles", "--port", str(port))
    assert "port 70000 is outside 0 to 65535" in refusal(capsys, "--port", "70000")
    assert "'no.such.invalid' is not an address of this machine" in refusal(capsys, "--host", "no.such.invalid")
    assert "0 visitors are outside 1 to 100" in refusal(capsys, "--visitors", "0")
    assert "there is no session 'nowhere'" in refusal(capsys, "nowhere")
    assert "1001 visitors are outside 1 to 1000" in refusal(capsys, "lecture-tiles", "--present", "--visitors", "1001")
    for words in (["--present"], ["lecture-tiles", "lecture-own-kernel", "--present"], ["--present", "--allow-runs"]):
        assert "give its name alone" in refusal(capsys, *words)
    for name in ("http://a b", "https://a.b:99999", "https://a.b:0"):
        assert f"'{name}' is not the name of a host" in refusal(capsys, "--name", name)
    assert "leave the names out" in refusal(capsys, "lecture-tiles", "--allow-runs")
    monkeypatch.delitem(sys.modules, "fwtui.commands.support.web_server", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.app_service", None)
    assert "web pages need textual-serve and segno; run: " in (told := refusal(capsys)) and "fwtui[serve]" in told


@contextmanager
def serving(*words: str) -> Iterator[tuple[str, psutil.Process, str]]:
    """A server: its link, its process, and what it says of itself; it must end by a signal, and without a traceback."""
    command = [sys.executable, "-P", "-m", "fwtui", "serve", "--port", "0", *words]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None
        told = "".join(server.stdout.readline() for _ in range(1 + ("--present" in words)))
        found = re.search(r"https?://[^/]+/\S*", told)
        assert found is not None
        yield found[0], psutil.Process(server.pid), told
        server.terminate()
        assert server.wait(WAIT) == 128 + 15
        errors = server.communicate()[1]
        assert "Traceback" not in errors, errors
    finally:
        server.kill()
        server.wait(WAIT)


async def children(server: psutil.Process, count: int) -> None:
    async with asyncio.timeout(WAIT):
        while len(server.children(recursive=True)) != count:
            await asyncio.sleep(0.05)


async def visits(address: str, server: psutil.Process) -> None:
    async with aiohttp.ClientSession() as client:
        async with client.get(address) as answer:
            assert answer.status == 200 and "https://" not in await answer.text()
        async with client.ws_connect(f"{address}ws?width=100000&height=30") as first:
            shown = b""
            async with asyncio.timeout(WAIT):
                while b"Replay" not in shown:
                    shown += await first.receive_bytes()
            await children(server, 1)
            (visitor,) = server.children()
            assert visitor.cmdline()[3:6] == ["fwtui", "dashboard", "--read-only"], "no shell in between"
            async with client.get(address) as answer:
                assert answer.status == 503 and "All 1 places are taken" in await answer.text()
            async with client.ws_connect(f"{address}ws") as second:
                message = await second.receive(timeout=WAIT)
                assert message.type is aiohttp.WSMsgType.CLOSE and "places are taken" in message.extra
            await first.send_str("this is no message of the page")
            await ended(first)
        await children(server, 0)
        await room_again(client, address)
        async with client.ws_connect(f"{address}ws") as killed:
            await children(server, 1)
            server.children()[0].kill()
            assert await ended(killed) == "The program has ended."
        await room_again(client, address)
        async with client.ws_connect(f"{address}ws"):
            await children(server, 1)
            server.terminate()
            async with asyncio.timeout(WAIT):
                while server.status() != psutil.STATUS_ZOMBIE:
                    await asyncio.sleep(0.05)
            await children(server, 0)


def end_in_spite_of_half_a_request(link: str, server: subprocess.Popen[str]) -> None:
    where = urlsplit(link)
    half = (b"POST /guess HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{", b"GET / HTTP/1.1\r\nHost:")
    for broken in (half[0], half[0].replace(b"Content-Length: 99", b"Transfer-Encoding: chunked") + b"\r\n"):
        with socket.create_connection((where.hostname, where.port)) as connection:
            connection.sendall(broken)  # and then it is gone, which is not worth a traceback
            time.sleep(0.1)
    open_ones = [socket.create_connection((where.hostname, where.port)) for _ in half]
    for connection, part in zip(open_ones, half, strict=True):
        connection.sendall(part)
    assert status_of(link, get("/", HERE)) == 200, "it has all of them"
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 128 + signal.SIGTERM, "aiohttp waits a minute by itself"
    for connection in open_ones:
        connection.close()


@pytest.mark.slow
def test_nobody_is_let_in_before_the_talk_is_drawn_and_half_a_request_delays_no_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "fwtui", "serve", "lecture-tiles", "--present", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert server.stdout is not None and server.stderr is not None
        refused = 0
        while not select.select([server.stdout], [], [], 0.05)[0]:
            with suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port)).close()
                assert select.select([server.stdout], [], [], 1.0)[0], "it lets in whom it cannot answer"
                break
            refused += 1
        assert refused and "Presenting lecture-tiles" in server.stdout.readline()
        end_in_spite_of_half_a_request(f"http://127.0.0.1:{port}/", server)
        assert "Traceback" not in server.stderr.read()
    finally:
        server.kill()
        server.wait(WAIT)


async def room_again(client: Any, address: str) -> None:
    async with asyncio.timeout(WAIT):
        while (await client.get(address)).status != 200:
            await asyncio.sleep(0.05)


async def ended(visit: Any) -> str:
    """Wait for the end of a visit, and return what is said of it."""
    async with asyncio.timeout(WAIT):
        while (message := await visit.receive()).type is aiohttp.WSMsgType.BINARY:
            pass
    return message.extra or ""


def test_a_visitor_gets_a_process_that_ends_with_the_visit_and_with_the_server() -> None:
    with serving("--visitors", "1", "lecture-tiles") as (link, server, told):
        assert told.count(". ") == 0 and "read-only" in told and "for this machine alone" in told
        asyncio.run(visits(link, server))


def test_who_may_start_runs_has_the_link_with_the_token() -> None:
    async def visit(link: str, server: psutil.Process) -> None:
        page = link.split("?")[0]
        assert len(link) - len(page) > 40
        for wrong in (page, f"{page}?token=", f"{page}?token=wrong", f"{page}?token=%ED%A0%80", f"{page}ws", f"{link[:-1]}"):
            cookies = {f"fwtui-token-{urlsplit(page).port}": "wrong"}
            async with aiohttp.ClientSession(cookies=cookies) as client, client.get(wrong) as answer:
                assert answer.status == 403 and "link with the token" in await answer.text()
        assert not server.children()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            async with client.get(link) as answer:
                assert answer.status == 200 and str(answer.url) == page, "no address bar shows the token"
                assert "HttpOnly" in answer.history[0].headers["Set-Cookie"]
            async with client.get(page, headers={"Origin": "http://elsewhere.example"}) as answer:
                assert answer.status == 403, "the cookie alone is not enough"
            async with client.ws_connect(f"{page}ws"):
                await children(server, 1)

    with serving("--allow-runs") as (link, server, _):
        asyncio.run(visit(link, server))


def status_of(address: str, request: bytes) -> int:
    """What a server says to bytes that need be no request at all; 0: nothing."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=WAIT) as connection:
        connection.sendall(request)
        told = connection.recv(1000)
    return int(told.split()[1]) if told.startswith(b"HTTP/") else 0


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", *headers, "Connection: close", "", "")).encode("latin-1")


def short(value: object) -> str:
    return ascii(value)[:60]


HERE = "Host: 127.0.0.1"
PROXIED = "Host: talk.example.org"


OF_STRANGERS = [
    (get("/", HERE), 200),
    (get("/", "Host: LOCALHOST:8000"), 200),
    (get("/", PROXIED, "Origin: https://talk.example.org"), 200),
    (get("/", PROXIED, "Origin: https://talk.example.org:8443"), 403),
    (get("/", HERE, "Origin: https://talk.example.org"), 200),  # of a proxy that names itself in Origin alone
    (get("/", "Host: elsewhere.example"), 403),
    (get("/", "Host: 10.1.2.3"), 403),
    (get("/", "Host:"), 403),
    (get("/", "Host: [::1"), 400),
    (get("/", "Host: [127.0.0.1]"), 400),
    (get("/", HERE, "Origin: http://[::1"), 400),
    (get("/", HERE, "Origin: http://elsewhere.example"), 403),
    (get("/", HERE, "Origin: http://127.0.0.1:1"), 403),
    (get("/", HERE, "Origin: null"), 403),
    (get("/ws", HERE, "Origin: http://elsewhere.example", "Upgrade: websocket", "Connection: Upgrade"), 403),
    (get("/ws", HERE), 400),
    (get("/static/../../../../../etc/passwd", HERE), 404),
    (get("/static/%2e%2e/%2e%2e/%2e%2e/etc/passwd", HERE), 404),
    (get("/static//etc/passwd", HERE), 404),
    (get("/static/", HERE), 403),
    (get("/?fontsize=%22onload=alert(1)", HERE), 200),
    (get("/", HERE, "Cookie: \xff=\xed\xa0\x80; fwtui-token-1=x"), 200),
    (get("/" + "a" * 20_000, HERE), 400),
    (get("/", HERE, "X: " + "a" * 20_000), 400),
    (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"DELETE / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 405),
]


BRACKETS = "[" * 30_000


# no JSON, another version's, too deep, of another type, too long, no number, no text; each starts a dashboard
FRAMES: tuple[str | bytes, ...] = ("", "[1]", BRACKETS)
MORE_FRAMES = (
    *(b"\xff" * 100, '["stdin", 7]', "x" * 70_000, '["resize", NaN]', "null", '["stdin"]', '["stdin", "\\ud800"]'),
    *('["resize", {}]', '["resize", {"width": 1e999, "height": 1}]', '["resize", {"width": "wide", "height": []}]'),
)


async def frame_sent(address: str, frame: str | bytes) -> None:
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{address}ws") as socket:
        await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
        if frame not in ("[1]", b"\xff" * 100):  # what another version may say is passed over
            await ended(socket)


@pytest.mark.parametrize("frames", [FRAMES, pytest.param(MORE_FRAMES, marks=pytest.mark.slow)], ids=["some", "others"])
def test_requests_of_strangers_do_no_harm_and_odd_frames_end_their_visit_alone(frames: tuple[str | bytes, ...]) -> None:
    """Of a server that is reached through a proxy, too."""
    with serving("--name", "https://talk.example.org") as (link, server, _):
        assert link == "https://talk.example.org/"
        address = f"http://127.0.0.1:{server.net_connections('tcp4')[0].laddr.port}/"
        for request, status in OF_STRANGERS:
            assert status_of(address, request) == status, short(request)
        for frame in frames:
            asyncio.run(frame_sent(address, frame))
            assert status_of(address, get("/", HERE)) == 200
        asyncio.run(children(server, 0))


def visiting() -> Any:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


ASKS, COUNTS = 8, 3  # markers of the lecture: one of several answers, and a number
BEGIN = {"time": 0.0, "marker": 0, "playing": False, "speed": 1.0, "answered": False}


@asynccontextmanager
async def following(page: str, pages: int = 1) -> AsyncIterator[Any]:
    """A visitor, and what its pages are told."""
    async with AsyncExitStack() as stack:
        visitor = await stack.enter_async_context(visiting())
        async with visitor.get(page):
            pass
        yield visitor, *[await stack.enter_async_context(visitor.get(f"{page}follow")) for _ in range(pages)]


async def told_by(events: Any, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """What a follower is told last, once this holds of it."""
    async with asyncio.timeout(WAIT):
        while True:
            line = await events.content.readline()
            if line.startswith(b"data: ") and wanted(news := json.loads(line[6:])):
                return news


WRONG = ({"marker": 99}, {"marker": -1}, {"speed": 3}, {"time": 1e9}, {"time": "0<b>"})
BODIES = [
    *(b"", b"null", b"[]", b"{}", b"\xff\xfe", BRACKETS.encode()[:4000], b'{"marker": 1e400, "guess": "1"}'),
    *(b'{"marker": 3, "guess": "1", "more": 1}', b'{"marker": "3", "guess": 1}'),
    b'{"marker": 3, "guess": "' + b"1" * 41 + b'"}',
    *(json.dumps({**BEGIN, **wrong}).encode() for wrong in WRONG),
]


async def nonsense(page: str, link: str) -> None:
    async with visiting() as lecturer, lecturer.get(link):
        for path, body in product(("drive", "guess"), BODIES):
            async with lecturer.post(page + path, data=body) as answer:
                assert answer.status == 400, (path, short(body))


NOT_THERE = "/ws /shown/x /shown/-1 /static/js/textual.js /../etc/passwd /%2e%2e/etc/passwd /run /record"


OF_FOLLOWERS = [
    *((get(path, HERE), 404) for path in NOT_THERE.split()),
    *((get(path, HERE), 405) for path in ("/drive", "/guess")),
    (get("/", "Host: elsewhere.example"), 403),
    (get("/", "Host: [::1"), 400),
    (get("/follow", HERE, "Origin: http://elsewhere.example"), 403),
    (b"DELETE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405),
    (b"POST /guess HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n" + b"1" * 99_999, 413),
]


async def lecture(page: str, link: str) -> None:
    async def all_shown(who: Any, news: dict[str, Any]) -> str:
        pieces = [who.get(f"{page}shown/{piece}") for piece in range(news["shown"])]
        return "".join([await (await piece).text() for piece in pieces])

    async with visiting() as lecturer, visiting() as stranger, following(page) as (follower, events):

        async def send(who: Any, path: str, status: int, **what: Any) -> None:
            async with who.post(page + path, json=what) as answer:
                assert answer.status == status, (what, await answer.text())

        async with lecturer.get(link) as answer:
            assert 'data-drives="True"' in await answer.text() and "token" not in str(answer.url)
        await send(stranger, "guess", 403, marker=ASKS, guess="1")  # without the page's cookie
        async with follower.get(page) as answer:
            assert 'data-drives="False"' in (text := await answer.text()) and link.split("=")[1] not in text
            assert "<td" not in text and "resident warps" not in text, "what comes is sent when it is shown"
        for who, path, status in ((follower, "notes", 403), (follower, "shown/0", 403), (lecturer, "notes", 200)):
            async with who.get(page + path) as answer:
                assert answer.status == status and ("64 warps" in await answer.text()) == (status == 200)
        await send(follower, "drive", 403, **BEGIN)
        async with lecturer.post(f"{page}drive", json=BEGIN, headers={"Origin": "http://elsewhere.example"}) as answer:
            assert answer.status == 403
        await send(follower, "guess", 409, marker=ASKS, guess="1")  # not asked yet
        await send(lecturer, "drive", 204, **{**BEGIN, "marker": ASKS})
        news = await told_by(events, lambda news: news["position"] and news["position"]["marker"] == ASKS)
        assert len(news["question"]["choices"]) == 3 and "64 warps" not in await all_shown(follower, news)
        assert news["bars"] is None and news["answer"] == "" and not news["position"]["playing"]
        for guess, status in (("2", 204), ("9", 400), ("<script>alert(1)</script>", 400), ("", 400), ("1", 204)):
            await send(follower, "guess", status, marker=ASKS, guess=guess)
        await send(lecturer, "drive", 204, **{**BEGIN, "marker": ASKS, "answered": True})
        news = await told_by(events, lambda news: news["bars"])
        assert [bar[1:] for bar in news["bars"]] == [[1, True], [0, False], [0, True]] and "64 warps" in news["answer"]
        assert news["followers"] == 1, "the lecturer is none"
        async with follower.get(f"{page}shown/{news['shown'] - 1}") as answer:
            shown = await answer.json()
            assert "64 warps" in shown["answer"] and shown["marker"] == ASKS
            assert [len(size["stops"][str(ASKS)][1]) for size in shown["sizes"]] == [40, 24]
            assert all("64 warps" in "".join(filter(None, size["texts"])) for size in shown["sizes"])
        await send(follower, "guess", 409, marker=ASKS, guess="2")
        await send(lecturer, "drive", 204, **{**BEGIN, "marker": COUNTS})
        await send(follower, "guess", 204, marker=COUNTS, guess="88 %")
        await send(lecturer, "drive", 204, **{**BEGIN, "marker": COUNTS, "answered": True})
        news = await told_by(events, lambda news: news["bars"] and news["position"]["marker"] == COUNTS)
        assert [bar[1:] for bar in news["bars"]] == [[1, True]]


async def four_pages(page: str, link: str) -> None:
    """That a visitor may have; a stranger none."""
    async with following(page, pages=5) as (_, first, *others), visiting() as stranger:
        async with asyncio.timeout(WAIT):
            # to its end: a telephone that lost its network is not known to be gone; a page is told, and comes no more
            assert (await first.content.read()).endswith(b"event: replaced\ndata:\n\n")
        assert (await told_by(others[-1], lambda news: news["followers"] == 4))["followers"] == 4
        async with stranger.get(f"{page}follow") as answer:
            assert answer.status == 403 and "cookie" in await answer.text()


def test_a_room_follows_the_lecturer_guesses_once_each_and_can_do_nothing_else() -> None:
    pytest.importorskip("segno")
    with serving("lecture-tiles", "--present") as (page, server, told):
        link = told.split("You lead at ")[1].split()[0]
        for tried in (lecture, four_pages, nonsense):
            asyncio.run(tried(page, link))
        for request, status in OF_FOLLOWERS:
            assert status_of(page, request) == status, short(request)
        assert not server.children(), "it runs nothing"
