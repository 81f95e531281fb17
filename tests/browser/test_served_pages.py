"""The pages of `fwtui serve` in headless Chromium: a dashboard takes keys, a lecturer leads, a follower may wander."""

import json
import time
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from typing import Any

import psutil
import pytest
from conftest import PATIENCE, Browser, serving

pytest.importorskip("textual_serve")
pytest.importorskip("segno")

WARPS = 8  # a marker of the lecture that asks for one of three
SHARE = 3  # of the card that asks for a number
SAID = "(document.getElementById('room')?.innerText ?? '')"
Talk = tuple[str, str]


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    with serving("lecture-tiles", "--present") as ((page, link, *_), _):
        yield page, link


class Lecturer:
    """One whose page is no browser."""

    def __init__(self, talk: Talk):
        self._page, link = talk
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._opener.open(link, timeout=30).close()

    def drive(self, **where: Any) -> None:
        position = {"time": 0.0, "marker": 0, "playing": False, "speed": 1, "answered": False, **where}
        self._opener.open(urllib.request.Request(f"{self._page}drive", json.dumps(position).encode()), timeout=30).close()

    def told(self) -> dict[str, Any]:
        with self._opener.open(f"{self._page}follow", timeout=30) as events:
            return json.loads(events.readline()[len(b"data: ") :])


def test_a_follower_follows_guesses_wanders_and_comes_back(browser: Browser, talk: Talk) -> None:
    lecturer = Lecturer(talk)
    lecturer.drive(marker=1, time=1.0)
    browser.visit(talk[0])
    browser.wait("window.replay?.at().marker === 1")
    assert not browser.run("document.getElementById('start').checkVisibility()"), "the lecturer plays"
    lecturer.drive(marker=WARPS, time=9.0)
    browser.wait(f"{SAID}.includes('shared memory')")
    assert not browser.run("document.querySelector('details.answer')"), "the lecturer shows the answer"
    browser.run("document.querySelector('#room form button').click()")
    browser.wait(f"{SAID}.includes('Your guess is in')")
    lecturer.drive(marker=SHARE, time=9.0)
    browser.wait("document.querySelector('#room input')")
    browser.run("document.querySelector('#room input').focus()")
    browser.press(*"4.5")
    assert (
        browser.run("document.querySelector('#room input').value") == "4.5" and browser.run("window.replay.at().marker") == SHARE
    )
    lecturer.drive(marker=WARPS, time=9.0)
    browser.wait(f"window.replay.at().marker === {WARPS}")
    lecturer.drive(marker=WARPS, time=9.0, answered=True)
    browser.wait(f"{SAID}.includes('registers: the answer') && window.replay.at().answered")
    assert "64 warps" in browser.run("document.getElementById('card').innerText")
    assert "64 warps" in browser.run("document.getElementById('screen').textContent"), "the screen has it too"
    for size in ((1366, 768), (390, 844), (844, 390)):
        browser.view(*size)
        top, bottom = (f"document.getElementById('{part}').getBoundingClientRect()" for part in ("room", "controls"))
        assert browser.wait(f"{bottom}.bottom <= {top}.top"), "what the room has guessed covers no controls"
    browser.view()
    browser.press("home")
    browser.wait(f"{SAID}.includes('You look around by yourself')")
    lecturer.drive(marker=2, time=5.0)
    browser.press("end")
    assert browser.run("window.replay.at().time") > 5.0, "who wanders is left alone"
    browser.run("document.querySelector('#room > button').click()")
    browser.wait("window.replay.at().marker === 2")
    lecturer.drive(time=0.5, playing=True)
    browser.wait("window.replay.at().marker === 1 && !window.replay.at().playing")  # it played on and stopped by itself
    assert "You follow" in browser.run(SAID)
    assert browser.said() == []


@pytest.mark.parametrize("width, height", [(1366, 768), (390, 844)])
def test_the_lecturers_page_leads_and_goes_on_where_the_room_is(browser: Browser, talk: Talk, width: int, height: int) -> None:
    browser.resize(width, height)
    lecturer = Lecturer(talk)
    lecturer.drive(marker=1, time=1.0)
    browser.visit(talk[1])
    browser.wait(f"{SAID}.includes('You lead')")
    browser.wait("window.replay.at().marker === 1")
    assert "token" not in browser.run("location.href")
    browser.press(")")
    browser.wait("window.replay.at().marker === 2")
    until = time.monotonic() + PATIENCE
    while lecturer.told()["position"]["marker"] != 2:
        assert time.monotonic() < until, "the server is never told"
    box = "document.getElementById('room').getBoundingClientRect()"
    assert browser.run(f"{box}.bottom <= innerHeight && {box}.top > 0"), "it is in view, wherever the page is"


def test_the_lecturers_notes_stand_at_the_card_of_the_room(browser: Browser, talk: Talk) -> None:
    lecturer = Lecturer(talk)
    browser.visit(talk[1])
    browser.visit(f"{talk[0]}notes")
    lecturer.drive(marker=WARPS, time=9.0)
    now = "document.querySelector('#stops .now')"
    browser.wait(f"{now}?.innerText.includes('The answer:')")
    lecturer.drive(marker=0, time=9.5, playing=True)
    lecturer.drive(marker=2, time=5.0)
    browser.wait(f"{now} === document.querySelector('#stops').children[1]")
    assert browser.run(f"{now}.getBoundingClientRect().bottom <= innerHeight")
    assert browser.said() == []


pytest.importorskip("textual_serve")

BLANK = 10_000  # bytes of a picture of an empty page, at most
# what comes down the page's web socket, which it draws on a canvas, as text
HEAR = r"""
window.heard = "";
let last = Promise.resolve();
const hear = told => { last = last.then(() => new Response(told.data).text()).then(text => { heard += text; }); };
window.WebSocket = class extends WebSocket {
    constructor(...given) { super(...given); this.addEventListener("message", hear); }
};
window.shown = words => heard.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").includes(words);
"""


def test_a_browser_shows_the_dashboard_takes_keys_and_asks_no_other_machine(browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.before(HEAR)
    with serving("lecture-tiles") as ((address, *_), server):
        assert b"ws:" not in urllib.request.urlopen(address, timeout=30).read(), "behind HTTPS it is wss"
        browser.visit(address)
        browser.wait("shown('1 Replay') && shown('lecture-tiles')")
        browser.press("y")
        browser.wait("shown('read-only here')")
        browser.press("P")
        browser.wait("shown(' leaves')")
        assert len(browser.picture()) > BLANK
        psutil.Process(server).children()[0].kill()
        browser.wait("document.body.innerText.includes('The program has ended')")
        asked = browser.run("performance.getEntriesByType('resource').map(entry => entry.name)")
        assert asked and all(url.startswith((address, "data:", "blob:")) for url in asked)
        browser.said()  # that its socket is closed
