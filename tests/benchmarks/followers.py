"""How far behind a room of followers is: python tests/benchmarks/followers.py [FOLLOWERS] [SESSION].

The goals are 2 s from a step of the lecturer to the last follower's picture, and 300 MB for all processes of the server, with
200 followers on two cores. Each opens the page, follows, takes the pieces of the film, and guesses, as page and phone do. They
are one process, which takes processor time, too. A benchmark, not a test: it asserts nothing.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import aiohttp
import psutil

COMMAND = [sys.executable, "-P", "-m", "fwtui", "serve", "--present", "--port", "0"]
MARKER = {"time": 0.0, "playing": False, "speed": 1.0}


class Follower:
    """One page of the room: what it was told last, and how many pieces of the film it has."""

    def __init__(self, page: str):
        self._page, self._pieces = page, 0
        self.news: dict[str, Any] = {}

    async def follow(self, ready: asyncio.Queue[None]) -> None:
        # a connector for each: a visitor comes alone
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as self._browser:
            await self._read("")
            async with self._browser.get(f"{self._page}follow", timeout=aiohttp.ClientTimeout(None)) as events:
                async for line in events.content:
                    if line.startswith(b"data: "):
                        news = json.loads(line[6:])
                        for piece in range(self._pieces, news["shown"]):
                            await self._read(f"shown/{piece}")
                        self._pieces, self.news = news["shown"], news
                        ready.put_nowait(None)

    async def guess(self, marker: int) -> None:
        async with self._browser.post(f"{self._page}guess", json={"marker": marker, "guess": "1"}) as answer:
            answer.raise_for_status()

    async def _read(self, path: str) -> None:
        async with self._browser.get(self._page + path) as answer:
            answer.raise_for_status()
            await answer.read()


async def measure(page: str, link: str, server: psutil.Process, count: int) -> None:
    ready: asyncio.Queue[None] = asyncio.Queue()
    followers = [Follower(page) for _ in range(count)]

    async def all_have(wanted: Callable[[dict[str, Any]], bool], begin: float) -> float:
        """Seconds until the last one has been told that."""
        while not all(one.news and wanted(one.news) for one in followers):
            await ready.get()
        return time.perf_counter() - begin

    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as lecturer, lecturer.get(link):
        begin = time.perf_counter()
        following = [asyncio.create_task(one.follow(ready)) for one in followers]
        print(f"{count} followers are there after {await all_have(lambda news: True, begin):.2f} s")
        delays: list[float] = []
        for marker in range(1, 100):
            for answered in (False, True):
                step = {**MARKER, "marker": marker, "answered": answered}
                begin = time.perf_counter()
                async with lecturer.post(f"{page}drive", json=step) as answer:
                    if answer.status != 204:
                        break
                delays.append(await all_have(lambda news, step=step: bool(news["position"]) and news["position"] == step, begin))
                if not answered and followers[0].news["question"]:
                    begin = time.perf_counter()
                    await asyncio.gather(*(one.guess(marker) for one in followers))
                    took = await all_have(lambda news: news["guesses"] == count, begin)
                    print(f"marker {marker}: all guess, and all are told of {count} guesses, in {took:.2f} s")
            else:
                continue
            break
        processes = [server, *server.children(recursive=True)]
        memory = sum(one.memory_full_info().uss for one in processes) / 1e6
        print(f"{len(delays)} steps: the last follower is {median(delays):.2f} s behind, at most {max(delays):.2f} s")
        print(
            f"the server: {memory:.0f} MB in {len(processes)} process(es), {sum(server.cpu_times()[:2]):.1f} s of the CPU in all"
        )
        for task in following:
            task.cancel()


def main(count: int = 200, session: str = "lecture-tiles") -> None:
    with subprocess.Popen([*COMMAND, session], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page, lead = process.stdout.readline().split(" at ")[1].split()[0], process.stdout.readline()
        try:
            asyncio.run(measure(page, lead.split("You lead at ")[1].split()[0], psutil.Process(process.pid), count))
        finally:
            process.terminate()


if __name__ == "__main__":
    main(*(int(word) if word.isdecimal() else word for word in sys.argv[1:]))  # pyright: ignore[reportArgumentType]
