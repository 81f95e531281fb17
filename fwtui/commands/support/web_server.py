"""The dashboard as a web page on this machine: textual-serve, with limits on connections, visitors and messages."""

from __future__ import annotations

import asyncio
import logging
import shlex
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress

import aiohttp_jinja2
import jinja2
from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.server import Server

MAX_VISITORS = 8  # each has a process of about 100 MB
MAX_CONNECTIONS = 64
MAX_MESSAGE = 1 << 16  # bytes of one message from a page
REQUEST_SECONDS = 15.0  # for all requests except visits, and for a visitor's process to take a message; slower ones are cut off
QUIT_SECONDS = 3.0  # for a visitor's process to end after its page has closed
LAST_SECONDS = 0.5  # for requests under way when a signal ends the server
HEADERS = {  # forbid content from other servers, and framing by other pages
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data:; connect-src 'self' ws:; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class _Visit(AppService):
    """The process of one visitor; its page is closed when the process ends."""

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self.remote_close()


class _Refusal(asyncio.Protocol):
    """A connection beyond the limit, closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class WebServer(Server):
    """A server of the page at `host:port`; each visitor gets a process that runs `command`."""

    def __init__(self, command: Sequence[str], host: str, port: int):
        # textual-serve would print the stderr of the process
        super().__init__(f"exec {shlex.join(command)} 2>/dev/null", host, port, title="fwtui")
        self._visits: dict[asyncio.BaseProtocol, web.WebSocketResponse] = {}

    async def run(self, listening: socket.socket) -> int:
        """Serve until a signal arrives, and return its number."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Queue[int] = asyncio.Queue()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, ended.put_nowait, number)
        # clients must not fill the terminal: asyncio prints a traceback for each failed accept(), aiohttp for broken requests
        loop.set_exception_handler(lambda loop, context: None)
        for name in ("aiohttp.server", "textual-serve"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        app = web.Application(middlewares=[self._check])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.templates_path))
        app.add_routes([web.get("/", self.handle_index), web.get("/ws", self.handle_websocket, name="websocket")])
        app.add_routes([web.static("/static", self.statics_path, name="static")])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=LAST_SECONDS)
        await runner.setup()
        requests = runner.server
        assert requests is not None

        def connect() -> asyncio.Protocol:
            if len(requests.connections) >= MAX_CONNECTIONS:
                return _Refusal()
            connection = requests()
            loop.call_later(REQUEST_SECONDS, cut_off, connection)
            return connection

        def cut_off(connection: web.RequestHandler) -> None:
            if connection not in self._visits and connection.transport is not None:
                connection.transport.abort()

        server = await loop.create_server(connect, sock=listening, backlog=MAX_CONNECTIONS)
        number = await ended.get()
        server.close()
        await runner.cleanup()
        return number

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests with other host names (DNS rebinding) and from other pages."""
        if f"http://{request.host}" != self.public_url or request.headers.get("Origin", self.public_url) != self.public_url:
            raise web.HTTPForbidden(text=f"This server answers only as {self.public_url}, and only its own page.")
        try:
            response = await handler(request)
        except (OSError, ValueError):  # a path that cannot name a file
            raise web.HTTPNotFound from None
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one visit, from its first message to its end."""
        page = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_MESSAGE)
        if len(self._visits) >= MAX_VISITORS:
            raise web.HTTPServiceUnavailable(text=f"All {MAX_VISITORS} places are taken; try again when a visitor has left.")
        self._visits[request.protocol] = page
        send = {"write_bytes": page.send_bytes, "write_str": page.send_str, "close": page.close}
        visit = _Visit(self.command, **send, download_manager=self.download_manager)
        try:
            await page.prepare(request)
            columns, rows = (int(request.query.get(side, "")[:4] or default) for side, default in (("width", 80), ("height", 24)))
            await visit.start(columns, rows)
            async for message in page:
                if message.type == WSMsgType.TEXT:
                    await asyncio.wait_for(self._pass_on(message.json(), visit, page), REQUEST_SECONDS)
        except (OSError, TypeError, ValueError, RecursionError):  # a bad message, a process that cannot start or stalls
            if not page.prepared:  # a bad handshake
                raise web.HTTPBadRequest from None
            await page.close()
        finally:
            with suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(visit.stop(), QUIT_SECONDS)
            with suppress(AssertionError):  # the process was never started
                visit.stdin.transport.abort()  # ends a process that does not react, even one that has input left to read
            del self._visits[request.protocol]
        return page

    async def _pass_on(self, message: object, visit: AppService, page: web.WebSocketResponse) -> None:
        """Pass keys, a size or a focus to the process. Raises TypeError or ValueError for an invalid message."""
        match message:
            case ["stdin", str(typed)]:
                await visit.send_bytes(typed.encode())
            case ["resize", {"width": int(width), "height": int(height)}]:
                await visit.set_terminal_size(width, height)
            case ["focus" | "blur" as what, *_]:
                await visit.send_meta({"type": what})
            case ["ping", data]:
                await page.send_json(["pong", data])
            case _:
                raise ValueError(message)
