"""Who may ask a web server what: its own pages, under its own name; for more, who has the link with a token."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import signal
import socket
from hmac import compare_digest
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler
from aiohttp.web_runner import GracefulExit

NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "::1")
TOKEN_BYTES = 32
LAST_WAIT = 1.0  # seconds for requests that a signal interrupts; those that are half sent would take a minute
FULL = "All {most} places are taken; come back when a visitor has left."
NEEDS_TOKEN = "This needs the link with the token, which `fwtui serve` has printed."


class WebAccess:
    """Checks each request: `page` is the address that visitors have; besides its host, the machine and the connection have names.

    With `guarded` there is a `token`; a visitor who comes by its link keeps it in a cookie, so that no address bar shows it.
    """

    def __init__(self, page: str, guarded: bool):
        self._page = urlsplit(page)
        machine = _canonical(socket.gethostname())
        self._names = (*NAMES_OF_LOOPBACK, _host(page), machine, f"{machine}.local")
        self.token = secrets.token_urlsafe(TOKEN_BYTES) if guarded else ""

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other names, which a hostile name server may have given to this address, and requests from other pages."""
        origin = request.headers.get("Origin")
        try:
            host = _host(f"//{request.host}")
            asking = urlsplit(origin or "")
            from_here = origin is None or asking.netloc == request.host or asking[:2] == self._page[:2]
        except ValueError:
            raise web.HTTPBadRequest(text="The Host or the Origin of this request is malformed.") from None
        if host not in (*self._names, _canonical(_connection(request)[0])):
            raise web.HTTPForbidden(text="This server is not known by that name; `fwtui serve --name HOST` adds one.")
        if not from_here:
            raise web.HTTPForbidden(text="This page does not talk to other pages.")
        return await handler(request)

    def holds_token(self, request: web.Request) -> bool:
        return bool(self.token) and self._same(request.cookies.get(cookie_name(request, "token"), ""))

    def by_link(self, request: web.Request) -> web.Response | None:
        """What a visitor who comes by the link gets: the token as a cookie, and the page without it in the address."""
        if not (self.token and self._same(request.query.get("token", ""))):
            return None
        here = request.path.rpartition("/")[2] or "./"  # as seen from it, as a proxy may have it elsewhere
        page = web.Response(status=303, headers={"Location": here, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
        secure = self._page.scheme == "https"
        page.set_cookie(cookie_name(request, "token"), self.token, httponly=True, samesite="Lax", secure=secure)
        return page

    def _same(self, token: str) -> bool:
        return compare_digest(token.encode(errors="replace"), self.token.encode())


def serve_until_signal(app: web.Application, listening: socket.socket) -> int:
    """Serve until a signal comes, and return its number."""
    ended_by = 0

    def end(number: int) -> None:
        nonlocal ended_by
        ended_by = number
        raise GracefulExit

    logging.getLogger("aiohttp.server").addFilter(_of_ours)  # what strangers send fills no terminal
    loop = asyncio.new_event_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)
    wait = {"shutdown_timeout": LAST_WAIT, "handle_signals": False}
    web.run_app(app, sock=listening, loop=loop, print=None, access_log=None, **wait)
    return ended_by


def _of_ours(record: logging.LogRecord) -> bool:
    """Whether it is about more than a request that is no HTTP, or was broken off."""
    return not (
        record.exc_info and isinstance(record.exc_info[1], (HttpProcessingError, web.RequestPayloadError, ConnectionError))
    )


def cookie_name(request: web.Request, what: str) -> str:
    """With the port, as browsers share the cookies of a host among its ports."""
    return f"fwtui-{what}-{_connection(request)[1]}"


def _connection(request: web.Request) -> tuple[str, int]:
    """The address and the port at which this visitor has reached the server."""
    address, port, *_ = request.get_extra_info("sockname", ("", 0))
    return address, port


def _host(url: str) -> str:
    """Raises ValueError."""
    return _canonical(urlsplit(url).hostname or "")


def _canonical(host: str) -> str:
    """A host in the one form in which it is compared."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().removesuffix(".")
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
