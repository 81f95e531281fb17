"""A lecture for a whole room: one page, drawn once, that follows the position of the lecturer's page, and takes guesses.

What a follower's page is told comes as server-sent events, which is one connection and one task for each. A message says all
that there is to know, so that a page that is slow or comes late misses nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
import zlib
from bisect import bisect_left, bisect_right
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from aiohttp import web

from fwtui.commands.support.web_access import FULL, NEEDS_TOKEN, WebAccess, cookie_name, serve_until_signal
from fwtui.common.errors import Refused
from fwtui.learn.questions import ballot
from fwtui.sessions.player import SPEEDS
from fwtui.tui.export.film import Film
from fwtui.tui.export.page import BEFORE, notes_page, page, seen_answer, seen_stretch

MOST_BYTES = 1 << 12  # of what a page sends
HEARTBEAT = 15.0  # seconds after which a connection is tried
PAGES = 4  # of one visitor; another one ends the first, as that a telephone has lost its network is known only minutes later
TOGETHER = 0.5  # seconds in which what the room does becomes one message
SAME = 1e-3  # seconds between which a page and this agree
VISITOR = "visitor"
NEEDS_COOKIE = "This is for the page; open it, and let it keep a cookie."
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page has a stricter one of its own
    "Referrer-Policy": "no-referrer",
}
PACKED = {"Content-Encoding": "deflate"}


class FilmPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the lecturer's page is in the film."""

    time: Annotated[float, msgspec.Meta(ge=0)]  # seconds of the film
    marker: Annotated[int, msgspec.Meta(ge=0)]
    playing: bool
    speed: float
    answered: bool  # the answer is shown


class Guess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a visitor guesses at the question of a marker."""

    marker: int
    guess: Annotated[str, msgspec.Meta(max_length=40)]


class TalkServer:
    """Serves a film to followers, up to a limit, and to the lecturer."""

    def __init__(self, film: Film, most: int, access: WebAccess):
        self._film, self._most, self._access = film, most, access
        ballots = {number: ballot(stop.cue.kind, stop.answer) for number, stop in enumerate(film.stops, 1)}
        self._ballots = {number: one for number, one in ballots.items() if one is not None}
        self._pages = {drives: page(film, drives).encode() for drives in (False, True)}
        self._notes = notes_page(film).encode()
        self._ends = sorted({film.duration, *(stop.played for stop in film.stops)})  # of the stretches that followers are sent
        stretches = pairwise((BEFORE, *self._ends))
        self._stretches = [_packed(seen_stretch(film, since, until)) for since, until in stretches]
        self._shown: list[bytes] = []  # the pieces of the film that the room has seen, as pages take them
        self._reached, self._answers = 0, set[int]()  # how many stretches are among these, and the markers with their answer
        self._position: FilmPosition | None = None
        self._since = 0.0
        self._followers = 0
        self._pages_of: dict[str, list[asyncio.Task[Any] | None]] = {}  # by visitor, those that follow
        self._replaced = set[asyncio.Task[Any] | None]()  # whose place a newer page of that visitor has taken
        self._soon: asyncio.TimerHandle | None = None

    def run(self, listening: socket.socket) -> int:
        """Serve until a signal comes, and return its number."""
        app = web.Application(middlewares=[self._access.check], client_max_size=MOST_BYTES)
        app.add_routes([web.get("/", self._index), web.get("/notes", self._read_notes), web.get("/follow", self._follow)])
        app.add_routes([web.get(r"/shown/{piece:\d{1,4}}", self._piece)])
        app.add_routes([web.post("/drive", self._drive), web.post("/guess", self._guess)])
        app.on_startup.append(self._begin)
        app.on_shutdown.append(self._end)
        return serve_until_signal(app, listening)

    async def _begin(self, app: web.Application) -> None:
        self._ended, self._news, self._message = False, asyncio.Event(), self._state_message()

    async def _end(self, app: web.Application) -> None:
        self._ended = True
        self._publish()

    async def _index(self, request: web.Request) -> web.Response:
        if (welcome := self._access.by_link(request)) is not None:
            return welcome
        answer = _html(self._pages[self._access.holds_token(request)])
        if not _visitor(request):
            answer.set_cookie(cookie_name(request, VISITOR), secrets.token_urlsafe(16), httponly=True, samesite="Lax")
        return answer

    async def _read_notes(self, request: web.Request) -> web.Response:
        if (welcome := self._access.by_link(request)) is not None:
            return welcome
        if not self._access.holds_token(request):
            raise web.HTTPForbidden(text=NEEDS_TOKEN)
        return _html(self._notes)

    async def _piece(self, request: web.Request) -> web.Response:
        piece = int(request.match_info["piece"])
        if piece >= len(self._shown):
            raise web.HTTPForbidden(text="This has not been shown.")
        return web.Response(body=self._shown[piece], content_type="application/json", headers={**HEADERS, **PACKED})

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        """Tell a page where the lecture is, until the page is closed."""
        follows, visitor = not self._access.holds_token(request), _visitor(request)
        if follows and not visitor:
            raise web.HTTPForbidden(text=NEEDS_COOKIE)
        pages = self._pages_of.get(visitor, [])
        if len(pages) == PAGES and (first := pages.pop(0)) is not None:
            self._replaced.add(first)
            first.cancel()
        elif follows and self._followers >= self._most:
            raise web.HTTPServiceUnavailable(text=FULL.format(most=self._most))
        self._pages_of[visitor] = pages
        pages.append(this := asyncio.current_task())
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        self._followers += follows
        self._publish_soon()
        try:
            with suppress(ConnectionError):
                await answer.prepare(request)
                message = self._state_message()
                while not self._ended:
                    news = self._news
                    await answer.write(message)
                    await _within(news)
                    message = self._message if news.is_set() else b":\n\n"
        except asyncio.CancelledError:
            if this not in self._replaced:
                raise
            with suppress(ConnectionError, TimeoutError):  # else the page would come again, and end another
                await asyncio.wait_for(answer.write(b"event: replaced\ndata:\n\n"), 1.0)
        finally:
            self._replaced.discard(this)
            self._followers -= follows
            if this in pages:
                pages.remove(this)
                if not pages:
                    del self._pages_of[visitor]
            self._publish_soon()
        return answer

    async def _drive(self, request: web.Request) -> web.Response:
        if not self._access.holds_token(request):
            raise web.HTTPForbidden(text=NEEDS_TOKEN)
        position = await _read(request, FilmPosition)
        if position.marker > len(self._film.stops) or position.speed not in SPEEDS or position.time > self._film.duration + 1:
            raise web.HTTPBadRequest(text="There is no such position.")
        self._position, self._since = position, time.monotonic()
        self._show(position)
        self._publish()
        return web.Response(status=204)

    def _show(self, position: FilmPosition) -> None:
        """Give followers the film up to the next marker where it plays, else up to the first that is not before the position."""
        marker = self._film.stops[position.marker - 1] if position.marker else None
        at = max(position.time, marker.played if marker is not None else 0.0)
        reached = bisect_right(self._ends, at + SAME) if position.playing else bisect_left(self._ends, at - SAME)
        self._shown += self._stretches[self._reached : reached + 1]
        self._reached = max(self._reached, reached + 1)
        if position.answered and marker is not None and position.marker not in self._answers:
            self._answers.add(position.marker)
            self._shown.append(_packed(seen_answer(self._film, position.marker)))

    async def _guess(self, request: web.Request) -> web.Response:
        guess = await _read(request, Guess)
        now, visitor = self._position, _visitor(request)
        if not visitor:
            raise web.HTTPForbidden(text=NEEDS_COOKIE)
        if now is None or guess.marker != now.marker or guess.marker not in self._ballots or now.answered:
            raise web.HTTPConflict(text="This question is closed.")
        try:
            self._ballots[guess.marker].take(visitor, guess.guess)
        except Refused as refusal:
            raise web.HTTPBadRequest(text=str(refusal)) from None
        self._publish_soon()
        return web.Response(status=204)

    def _publish(self) -> None:
        """Tell every page what there is to know now."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self._message, news, self._news = self._state_message(), self._news, asyncio.Event()
        news.set()

    def _publish_soon(self) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(TOGETHER, self._publish)

    def _state_message(self) -> bytes:
        now = self._position
        ballot, question = self._ballots.get(now.marker) if now is not None else None, None
        if now is not None and ballot is not None:
            words = self._film.stops[now.marker - 1].cue.words
            question = {"words": words, "choices": [choice.words for choice in ballot.choices], "hint": ballot.kind.hint}
        answered = ballot if now is not None and now.answered else None
        what = {
            "position": now,
            "age": time.monotonic() - self._since if now is not None else 0.0,
            "followers": self._followers,
            "question": question,
            "guesses": len(ballot) if ballot is not None else 0,
            "answer": answered.answer.words if answered is not None else "",
            "bars": answered.bars() if answered is not None else None,
            "shown": len(self._shown),
        }
        return b"data: " + msgspec.json.encode(what) + b"\n\n"


def _html(content: bytes) -> web.Response:
    return web.Response(body=content, content_type="text/html", charset="utf-8", headers=HEADERS)


def _packed(piece: object) -> bytes:
    """As PACKED says."""
    return zlib.compress(msgspec.json.encode(piece))


async def _within(news: asyncio.Event) -> None:
    """Wait for news, but no longer than until the connection is to be tried."""
    with suppress(TimeoutError, asyncio.TimeoutError):
        await asyncio.wait_for(news.wait(), HEARTBEAT)


async def _read(request: web.Request, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise web.HTTPBadRequest(text="That is nothing that the page sends.") from None


def _visitor(request: web.Request) -> str:
    """Who this is, if the page has been there; else nothing."""
    cookie = request.cookies.get(cookie_name(request, VISITOR), "")
    return cookie if len(cookie) == len(secrets.token_urlsafe(16)) else ""
