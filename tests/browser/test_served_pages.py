"""The page of `fwtui serve` in headless Chromium."""

import psutil
import pytest
from conftest import Browser, serving

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
    with serving("lecture-tiles") as (address, server):
        browser.visit(address)
        browser.wait("shown('1 Replay') && shown('lecture-tiles')")
        browser.click("#terminal")
        browser.press("y")
        browser.wait("shown('read-only here')")
        browser.press("P")
        browser.wait("shown(' leaves')")
        assert len(browser.picture()) > BLANK
        psutil.Process(server).children()[0].kill()
        browser.wait("document.body.innerText.includes('Session ended')")
        asked = browser.run(
            "performance.getEntriesByType('resource').filter(entry => entry.responseStatus).map(entry => entry.name)"
        )
        assert asked and all(url.startswith((address, "data:", "blob:")) for url in asked)
        browser.said()  # that its socket is closed
