"""The dashboard as a web page: each visitor has a separate process, sees its screen and sends it keys."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from functools import partial
from html import escape
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, web
from aiohttp.typedefs import Handler
from aiohttp.web_runner import GracefulExit
from textual_serve.app_service import AppService
from textual_serve.server import Server

NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_CELLS = (500, 200)  # columns and rows of a visitor's page
PATIENCE = 3.0  # seconds until the process of a visitor who has left is killed
# nothing comes from other servers, and no other page can put this one into a frame
HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data:; connect-src 'self' ws: wss:; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>fwtui</title>
<link rel="stylesheet" href="/static/css/xterm.css">
<style>
body {{ background: #11161b; margin: 0; }}
@font-face {{ font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }}
#ended {{ display: none; position: absolute; z-index: 10; padding: 3em; }}
#ended {{ background: #11161b; color: #d3dbe1; font: 18px sans-serif; }}
body.-closed #ended {{ display: block; }}
</style>
<script src="/static/js/textual.js"></script>
</head>
<body>
<div id="ended">This visit has ended, or all places are taken. <a href="/" style="color: #56b6c2">Come back</a></div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="ws://{host}/ws" data-font-size="{size}"></div>
</body>
</html>
"""
FULL = "All {most} places are taken; come back when a visitor has left."


class Visitor(AppService):
    """One visitor's process, which ends with the visit."""

    words: Sequence[str] = ()

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # without a shell: what sessions and folders are called is never read as a command
        environment = self._build_environment(*_bounded(width, height))
        self._process = await asyncio.create_subprocess_exec(*self.words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment)
        self._stdin = self._process.stdin
        return self._process

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(*_bounded(width, height))

    async def stop(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        process = self._process
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(super().stop(), PATIENCE)
        if process is not None and process.returncode is None:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                self.stdin.close()
                await asyncio.wait_for(process.wait(), PATIENCE)
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


class WebServer(Server):
    """Serves a page whose visitors each get a process of this command, up to a limit."""

    def __init__(self, words: Sequence[str], most: int, loopback: bool):
        super().__init__("fwtui", title="fwtui")
        self._words, self._most, self._loopback = words, most, loopback
        self._visits: set[web.WebSocketResponse] = set()
        self._ended_by = 0

    def run(self, listening: socket.socket) -> int:
        """Serve until a signal comes, and return its number."""
        loop = asyncio.new_event_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, number)
        web.run_app(self._make_app(), sock=listening, handle_signals=False, loop=loop, print=None, access_log=None)
        return self._ended_by

    def _end(self, number: int) -> None:
        self._ended_by = number
        raise GracefulExit

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._checked])
        app.add_routes([web.get("/", self.handle_index), web.get("/ws", self.handle_websocket)])
        app.add_routes([web.static("/static", self.statics_path)])
        app.on_shutdown.append(self.on_shutdown)
        return app

    async def on_shutdown(self, app: web.Application) -> None:
        await asyncio.gather(*(visit.close(code=WSCloseCode.GOING_AWAY) for visit in [*self._visits]), return_exceptions=True)

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests from other pages in a visitor's browser, and host names that only pretend to be this machine."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="This page does not talk to other pages.")
        if self._loopback and urlsplit(f"//{request.host}").hostname not in NAMES_OF_LOOPBACK:
            raise web.HTTPForbidden(text="This page is for its own machine, under its own address.")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.Response:  # pyright: ignore[reportIncompatibleMethodOverride]
        if len(self._visits) >= self._most:
            return web.Response(status=503, text=FULL.format(most=self._most), headers=HEADERS)
        size = request.query.get("fontsize", "")
        page = PAGE.format(host=escape(request.host), size=size if size.isascii() and size.isdecimal() and len(size) < 3 else 16)
        return web.Response(text=page, content_type="text/html", headers=HEADERS)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One visit, from its first frame to its end."""
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=1 << 16)
        await socket.prepare(request)
        if len(self._visits) >= self._most:
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=FULL.format(most=self._most).encode())
            return socket
        self._visits.add(socket)
        visitor = Visitor(
            "fwtui",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=partial(_closed, socket),
            download_manager=self.download_manager,
        )
        visitor.words = self._words
        try:
            await visitor.start(_cells(request, "width", 80), _cells(request, "height", 24))
            # what no page of ours sends ends the visit
            with contextlib.suppress(AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError):
                await self._process_messages(socket, visitor)
        finally:
            await visitor.stop()
            self._visits.discard(socket)
            await socket.close()
        return socket


async def _closed(socket: web.WebSocketResponse) -> None:
    await socket.close()


def _cells(request: web.Request, name: str, usual: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else usual


def _bounded(width: int, height: int) -> tuple[int, int]:
    """A size that a visitor's page may have. Raises TypeError if it is not a size."""
    columns, rows = MOST_CELLS
    return max(1, min(int(width), columns)), max(1, min(int(height), rows))
