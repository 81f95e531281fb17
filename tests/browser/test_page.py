"""The exported page in a real browser, opened from the disk: playback, seeking, keys and the values of the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fwtui.__main__ import main
from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events
from fwtui.tui import filmed, render
from fwtui.tui.export.film import SMALL, FilmCut
from fwtui.tui.export.page import page

if TYPE_CHECKING:
    from conftest import Browser

FLAGSHIP = "h200-n4096-naive-blocked"
LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl.gz"
TALK = """# A talk

## run 2 end: What tiles do
Two things:
- one
- two

## run 2 end: More
And more.
"""
TEXT = "document.getElementById('text').textContent"
NOW = "Number(document.body.dataset.t)"
PLAYING = "document.getElementById('player').classList.contains('playing')"
CARD = "document.getElementById('card').textContent"


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("talk") / "talk.html"
    assert main(["export", FLAGSHIP, "-o", str(out), "--fps", "1"]) == 0
    return out


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lecture") / "lecture.html"
    film = filmed(LECTURE, reader.load(LECTURE), (120, 40), FilmCut(begin=4.0, rate=1), small=True)
    out.write_text(page(film), encoding="utf-8")
    return out


@pytest.fixture(autouse=True)
def _nothing_is_complained_of(browser: Browser) -> object:
    browser.said()
    yield
    browser.view()
    browser.prefer()
    assert browser.said() == [], "errors, or something that was blocked"


def test_the_last_screen_of_the_page_is_that_of_render(browser: Browser, talk: Path, tmp_path: Path) -> None:
    render(shipped_folder() / f"{FLAGSHIP}.fwt.jsonl.gz", None, (120, 40), tmp_path / "end.txt")
    browser.open(talk, "#end")
    told = (tmp_path / "end.txt").read_text(encoding="utf-8")
    assert browser.run(TEXT) == told
    drawn = browser.run("document.getElementById('screen').textContent")
    for figure in ("8.03x SPEEDUP OVER NAIVE", "31.5 ms", "13.0 %"):
        assert figure in told and figure in drawn
    assert browser.run("[...document.querySelectorAll('td')].some(cell => cell.textContent === '31.5 ms')")


def test_the_page_plays_to_its_end(browser: Browser, talk: Path) -> None:
    browser.open(talk)
    assert "8.03x SPEEDUP" in browser.run(TEXT) and not browser.run(PLAYING), "a poster: the last screen"
    browser.press("home")
    assert browser.run(NOW) < 1 and "No run has begun" in browser.run(TEXT)
    browser.press(*"++++++", " ")
    assert browser.run("document.getElementById('speed').textContent") == "64×"
    assert browser.wait("location.hash === '#end'") and "8.03x SPEEDUP" in browser.run(TEXT)
    browser.press(" ", " ")
    assert browser.run(NOW) < 29, "from its end it begins again"


def test_keys_of_the_page_seek_to_their_targets(browser: Browser, talk: Path) -> None:
    lines = [line.event for line in reader.load(shipped_folder() / f"{FLAGSHIP}.fwt.jsonl.gz").lines]
    first, second = (event.t for event in lines if isinstance(event, events.RunStarted))
    end = next(event.t for event in lines if isinstance(event, events.RunDone))
    browser.open(talk, "#t=12.5")
    assert browser.run(NOW) == 12.5 and "RUN 1" in browser.run(TEXT)
    browser.press("n")
    assert browser.run(NOW) == pytest.approx(second, abs=0.01) and "RUN 2" in browser.run(TEXT)
    browser.press("p")
    assert browser.run(NOW) == pytest.approx(first, abs=0.01)
    assert "Run 1: Naive" in browser.run("document.getElementById('message').textContent")
    browser.press("home", "right")
    after = browser.run(NOW)
    browser.press("left")
    assert browser.run(NOW) < 1 < after
    browser.press("end", ",", ".")
    assert browser.run("location.hash") == "#end"
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")
    browser.press("escape")
    assert not browser.run("document.getElementById('keys').open")
    before = browser.run(NOW)
    browser.run("document.querySelector('tbody a').click()")
    assert browser.wait(f"{NOW} !== {before}") and browser.run(NOW) == pytest.approx(end, abs=0.01), "where run 1 ends"


def test_every_control_is_reached_by_tab_and_has_a_name(browser: Browser, talk: Path) -> None:
    browser.open(talk, "#end")
    names = []
    for _ in range(14):
        browser.press("tab")
        said = "document.activeElement"
        names.append(browser.run(f"{said}.getAttribute('aria-label') || {said}.textContent.trim().slice(0, 40)"))
        assert browser.run(f"{said} === document.body || getComputedStyle({said}).outlineStyle !== 'none'")
    assert {"Position", "Previous run", "Play", "Next run", "Slower", "Faster", "Copy link", "Full screen", "Keys"} <= {*names}


def test_a_lecture_stops_and_answers_when_asked(browser: Browser, lecture: Path) -> None:
    browser.open(lecture)
    assert "The first time · " in browser.run(TEXT) and browser.run(NOW) < 15, "it opens at its first card"
    browser.click("#card li:nth-child(2) a")  # before it starts, there are links to all cards
    assert browser.wait("location.hash === '#marker=2'") and browser.wait(f"{CARD}.includes('Show the answer')")
    _, _, answer = browser.run(CARD).partition("Show the answer")
    assert answer and answer not in browser.run(TEXT)
    browser.press("!")
    assert browser.wait(f"{TEXT}.includes('{answer}')"), "the screen itself has the answer"
    browser.press("!")
    assert browser.wait(f"!{TEXT}.includes('{answer}')")
    for marker in range(3, 9):
        browser.press(" ")
        assert browser.wait(f"location.hash === '#marker={marker}'")
    browser.press(" ")
    assert browser.wait("location.hash === '#end'"), "the end is an end"
    browser.press("(")
    assert browser.run("location.hash") == "#marker=8"


def test_a_click_on_the_screen_plays_and_pauses(browser: Browser, talk: Path) -> None:
    browser.open(talk)
    for playing in (True, False, True):
        browser.click("#stage")
        assert browser.run(PLAYING) == playing
    assert browser.run(NOW) < 29 and browser.run("document.getElementById('start').hidden")


def test_digits_go_to_tenths_and_l_repeats(browser: Browser, talk: Path) -> None:
    browser.open(talk)
    length = float(browser.run("document.getElementById('seek').max"))
    for tenth in (3, 0, 9):
        browser.press(str(tenth))
        assert browser.run("Number(document.getElementById('seek').value)") == pytest.approx(length * tenth / 10, abs=0.01)
    browser.press("l", *"++++++", " ")
    assert browser.wait(f"{NOW} < 20") and browser.run(PLAYING), "it begins again by itself"


def test_embedded_there_is_the_player_alone(browser: Browser, talk: Path) -> None:
    browser.open(talk, "#embed")
    assert browser.run(
        "['header', 'footer', '#legend', '#runs-caption'].every(it => !document.querySelector(it).checkVisibility())"
    )
    browser.press("5")
    assert browser.run("location.hash.startsWith('#embed&t=')"), "a reload stays embedded"


def test_text_copied_from_the_screen_is_whole_rows(browser: Browser, talk: Path) -> None:
    browser.open(talk, "#end")
    copied = """(() => {
        let told = "";
        const rows = document.querySelectorAll("#screen > g");
        getSelection().setBaseAndExtent(rows[1], 0, rows[4], rows[4].childNodes.length);
        const event = new ClipboardEvent("copy", {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});
        document.querySelector("#screen").dispatchEvent(event);
        return event.clipboardData.getData("text/plain");
    })()"""
    assert browser.run(copied) == "\n".join(browser.run(TEXT).split("\n")[1:5])


def test_cards_have_their_titles_and_lists_and_pins_of_one_moment_stand_apart(browser: Browser, tmp_path: Path) -> None:
    text = tmp_path / "talk.md"
    text.write_text(TALK, encoding="utf-8")
    out = tmp_path / "titled.fwt.jsonl"
    assert main(["mark", FLAGSHIP, "--from", str(text), "-o", str(out)]) == 0
    film = filmed(out, reader.load(out), (120, 40), FilmCut(begin=29.0, rate=1))
    (tmp_path / "titled.html").write_text(page(film), encoding="utf-8")
    browser.open(tmp_path / "titled.html", "#marker=1")
    assert browser.run("document.querySelector('#card h3').textContent") == "What tiles do"
    assert browser.run("[...document.querySelectorAll('#card li')].map(it => it.textContent).join()") == "one,two"
    places = browser.run("[...document.querySelectorAll('.tick')].map(it => it.getBoundingClientRect().x)")
    assert places[1] - places[0] > 10


def test_with_less_motion_there_are_fewer_pictures(browser: Browser, talk: Path) -> None:
    browser.prefer(prefers_reduced_motion="reduce")
    browser.open(talk, "#t=6")
    times = "(window.times ??= [], times.at(-1) === document.body.dataset.t || times.push(document.body.dataset.t), times)"
    browser.press(" ")
    seen = browser.wait(f"{times}.length > 2 && times")
    assert float(seen[2]) - float(seen[1]) >= 0.9


def test_a_guess_is_shown_with_the_answer(browser: Browser, lecture: Path) -> None:
    browser.open(lecture, "#marker=2")
    said = "document.querySelector('#card .guessed').textContent"
    browser.click("#card .guess input")
    browser.press(*"3 % n")
    assert browser.run("location.hash") == "#marker=2", "the letters are the guess"
    browser.press("!")
    assert browser.wait(f"{said}.startsWith('You guessed: 3 % n.')")
    assert browser.run("document.querySelector('#card .guessed + p').checkVisibility()"), "the answer follows it"
    browser.open(lecture, "#marker=6")
    offered = browser.run("[...document.querySelectorAll('#card option')].map(it => it.textContent)")
    assert len(offered) > 2 and not any("%" in one for one in offered), "a choice tells no share"


def test_on_paper_are_the_last_screen_every_answer_and_reasons_as_rows(browser: Browser, lecture: Path) -> None:
    browser.view(390, 844)
    browser.open(lecture, "#marker=1")
    last = "document.getElementById('screen').textContent"
    before = browser.run(last)
    browser.prefer_print(True)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    try:
        assert browser.run(last) != before and browser.run("document.querySelectorAll('#screen > g').length") == 40
        assert browser.run("[...document.querySelectorAll('#stops .answer p:not([hidden])')].every(it => it.checkVisibility())")
        assert browser.run("[...document.querySelectorAll('tr.because')].filter(it => it.checkVisibility()).length") >= 1
        assert not browser.run("document.getElementById('desk').checkVisibility()")
    finally:
        browser.prefer_print(False)
        browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(last) == before
    browser.view()


@pytest.mark.parametrize(
    ("size", "scheme"), [((1366, 768), "light"), ((1920, 1080), "dark"), ((390, 844), "dark"), ((844, 390), "light")]
)
def test_card_screen_and_controls_are_seen_at_once_and_letters_can_be_read(
    browser: Browser, lecture: Path, size: tuple[int, int], scheme: str, tmp_path: Path
) -> None:
    browser.view(*size)
    browser.prefer(prefers_color_scheme=scheme)
    browser.open(lecture)
    assert browser.run("document.getElementById('card').getBoundingClientRect().bottom") <= size[1], "its poster"
    browser.open(lecture, "#marker=8")
    browser.press("!")
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
    for full in (False, True):
        for part in ("card", "screen", "timeline", "controls"):
            box = browser.run(f"document.getElementById('{part}').getBoundingClientRect().toJSON()")
            seen = box["height"] > 20 and box["top"] >= 0 and box["right"] <= size[0] and box["bottom"] <= size[1]
            assert seen, (part, full)
        assert browser.run("scrollY") == 0
        browser.press("f")
        assert browser.wait(f"!document.fullscreenElement === {str(full).lower()}")
    cells = SMALL if min(size) < 400 else (120, 40)
    letters = browser.run(
        "16 * document.getElementById('screen').clientWidth / document.getElementById('screen').viewBox.baseVal.width"
    )
    assert browser.run("document.getElementById('screen').viewBox.baseVal.height") == 20 * (cells[1] - 1), "no keys are drawn"
    assert letters >= 9 and browser.run("document.querySelectorAll('#screen > g').length") == cells[1]
    render(LECTURE, None, cells, tmp_path / "end.txt")
    browser.press("end")
    assert browser.run(TEXT) == (tmp_path / "end.txt").read_text(encoding="utf-8")


def test_a_window_that_is_made_smaller_gets_larger_letters(browser: Browser, lecture: Path) -> None:
    rows = "document.querySelectorAll('#screen > g').length"
    browser.view(1366, 768)
    browser.open(lecture, "#marker=8")
    browser.press("!")
    assert browser.run(rows) == 40
    browser.view(390, 844)
    assert browser.wait(f"{rows} === 24") and "tries it" in browser.run("document.getElementById('screen').textContent")
    browser.view(1366, 768)
    assert browser.wait(f"{rows} === 40")


def test_a_browser_that_cannot_unpack_says_so_and_shows_the_end(browser: Browser, talk: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.html"
    old.write_text(talk.read_text(encoding="utf-8").replace('id="film">', 'id="film">!', 1), encoding="utf-8")
    browser.open(old)
    assert "does not play here" in browser.run("document.getElementById('message').textContent")
    assert "8.03x SPEEDUP" in browser.run(TEXT) and browser.run("document.getElementById('desk').hidden")


def test_no_word_of_a_session_runs(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
    marks = [part for words in (evil, f"@phases ?phase {evil}") for part in ("--at", "end 2", words)]
    out = tmp_path / "evil.fwt.jsonl"
    assert main(["mark", FLAGSHIP, "--title", evil, *marks, "-o", str(out)]) == 0
    film = filmed(out, reader.load(out), (120, 40), FilmCut(begin=29.0, rate=1))
    (tmp_path / "evil.html").write_text(page(film), encoding="utf-8")
    browser.open(tmp_path / "evil.html", "#marker=2")
    browser.press("!", " ", "end")
    assert browser.run("document.title") == evil and "owned" in browser.run(CARD + " + " + TEXT)


def test_the_animated_picture_moves(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "talk.svg"
    assert main(["export", FLAGSHIP, "-o", str(out), "--from", "8", "--fps", "1"]) == 0
    browser.show(out)
    moving = "document.getAnimations().length"
    assert browser.run(moving) > 3
    place = "[...document.querySelectorAll('g[id^=l]')].map(g => getComputedStyle(g).transform).join()"
    seen = set()
    for share in (0.0, 0.2, 0.99):
        at = f"{share} * a.effect.getComputedTiming().duration"
        browser.run(f"document.getAnimations().forEach(a => (a.pause(), a.currentTime = {at}))")
        seen.add(browser.run(place))
    assert len(seen) == 3
