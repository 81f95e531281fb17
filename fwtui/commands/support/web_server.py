"""The dashboard as a web page: each visitor has a separate process, sees its screen and sends it keys."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from string import Template

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from fwtui.commands.support.web_access import FULL, NEEDS_TOKEN, WebAccess, serve_until_signal

MOST_CELLS = (500, 200)  # columns and rows of a visitor's page
PATIENCE = 3.0  # seconds until the process of a visitor who has left is killed
# nothing comes from other servers, and no other page can put this one into a frame
HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data:; connect-src 'self' ws: wss:; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
PAGE = Template(Path(__file__).with_name("web_page.html").read_text(encoding="utf-8"))
STATIC = Path(textual_serve.__file__).parent / "static"  # the terminal of the page
DRIVER = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "TEXTUAL_FPS": "60", "TEXTUAL_COLOR_SYSTEM": "truecolor"}
BEGINS = b"__GANGLION__\n"  # what that driver begins with


class Visitor:
    """One visitor's process, which ends with the visit.

    It speaks as Textual's driver for web pages does: what is seen and typed is D, what is about it M, then four bytes that say
    how long it is, and the bytes themselves.
    """

    def __init__(self, words: Sequence[str], socket: web.WebSocketResponse):
        self._words = words
        self._socket = socket

    async def start(self, width: int, height: int) -> None:
        columns, rows = map(str, _bounded(width, height))
        environment = {**os.environ, **DRIVER, "COLUMNS": columns, "ROWS": rows}
        # without a shell: what sessions and folders are called is never read as a command
        self._process = await asyncio.create_subprocess_exec(*self._words, stdin=PIPE, stdout=PIPE, env=environment)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._keys, self._seen = self._process.stdin, self._process.stdout
        self._task = asyncio.create_task(self._show())

    async def _show(self) -> None:
        """Give what the process draws to the page, until one of them ends."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._seen.readuntil(BEGINS)
            while True:
                kind, length = await self._seen.readexactly(1), int.from_bytes(await self._seen.readexactly(4), "big")
                payload = await self._seen.readexactly(length)
                if kind == b"D":
                    await self._socket.send_bytes(payload)
                elif kind == b"M" and json.loads(payload).get("type") == "exit":
                    break
        await self._socket.close(message=b"The program has ended.")

    async def _tell(self, kind: bytes, payload: bytes) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError, TimeoutError, asyncio.TimeoutError):
            self._keys.write(kind + len(payload).to_bytes(4, "big") + payload)
            await asyncio.wait_for(self._keys.drain(), PATIENCE)  # a process that hangs reads nothing

    async def take(self, message: object) -> None:
        """What the page says: keys, its size, whether it has the focus. Raises TypeError or ValueError for what no page says."""
        match message:
            case ["stdin", str(typed)]:
                await self._tell(b"D", typed.encode())
            case ["resize", {"width": width, "height": height}]:
                columns, rows = _bounded(width, height)
                await self._about(type="resize", width=columns, height=rows)
            case ["ping", data]:
                await self._socket.send_json(["pong", data])
            case ["blur" | "focus" as what, *_]:
                await self._about(type=what)
            case ["stdin" | "resize", *_] | []:
                raise ValueError(message)
            case list():  # of another version of the page's terminal
                pass
            case _:
                raise TypeError(message)

    async def _about(self, **what: object) -> None:
        await self._tell(b"M", json.dumps(what).encode())

    async def stop(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        for ask in (partial(self._about, type="quit"), self._close):
            await ask()
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
                break
        else:
            self._process.kill()
            await self._process.wait()
        self._task.cancel()

    async def _close(self) -> None:
        self._keys.close()


class WebServer:
    """Serves a page whose visitors each get a process of this command, up to a limit."""

    def __init__(self, words: Sequence[str], most: int, access: WebAccess):
        self._words, self._most, self._access = words, most, access
        self._visits: set[web.WebSocketResponse] = set()

    def run(self, listening: socket.socket) -> int:
        """Serve until a signal comes, and return its number."""
        app = web.Application(middlewares=[self._access.check])
        app.add_routes([web.get("/", self._index), web.get("/ws", self._visit)])
        app.add_routes([web.static("/static", STATIC)])
        app.on_shutdown.append(self._shut_down)
        return serve_until_signal(app, listening)

    async def _shut_down(self, app: web.Application) -> None:
        await asyncio.gather(*(visit.close(code=WSCloseCode.GOING_AWAY) for visit in [*self._visits]), return_exceptions=True)
        while self._visits:  # until their processes have ended
            await asyncio.sleep(0.02)

    def _check_token(self, request: web.Request) -> None:
        if self._access.token and not self._access.holds_token(request):
            raise web.HTTPForbidden(text=NEEDS_TOKEN)

    async def _index(self, request: web.Request) -> web.Response:
        if (welcome := self._access.by_link(request)) is not None:
            return welcome
        self._check_token(request)
        if len(self._visits) >= self._most:
            return web.Response(status=503, text=FULL.format(most=self._most), headers=HEADERS)
        size = request.query.get("fontsize", "")
        page = PAGE.substitute(size=size if size.isascii() and size.isdecimal() and len(size) < 3 else 16)
        return web.Response(text=page, content_type="text/html", headers=HEADERS)

    async def _visit(self, request: web.Request) -> web.WebSocketResponse:
        """One visit, from its first frame to its end."""
        self._check_token(request)
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=1 << 16)
        await socket.prepare(request)
        if len(self._visits) >= self._most:
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=FULL.format(most=self._most).encode())
            return socket
        self._visits.add(socket)
        try:
            await self._accompany(request, socket)
        finally:
            self._visits.discard(socket)
            await socket.close()
        return socket

    async def _accompany(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        visitor = Visitor(self._words, socket)
        try:
            await visitor.start(_cells(request, "width", 80), _cells(request, "height", 24))
        except OSError:  # no more processes
            return
        try:
            # what no page of ours sends ends the visit
            with contextlib.suppress(TypeError, ValueError, OverflowError, RecursionError):
                async for message in socket:
                    if message.type == WSMsgType.TEXT:
                        await visitor.take(message.json())
        finally:
            await visitor.stop()


def _cells(request: web.Request, name: str, usual: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else usual


def _bounded(width: int, height: int) -> tuple[int, int]:
    """A size that a visitor's page may have. Raises TypeError if it is not a size."""
    columns, rows = MOST_CELLS
    return max(1, min(int(width), columns)), max(1, min(int(height), rows))
