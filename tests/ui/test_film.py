"""Films of replays: their frames are the replay's screens, and the three file types contain only the session."""

import base64
import html.parser
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import scenes
from builders import run_started, write_session
from recorded_sessions import LECTURE

from fwtui.__main__ import main
from fwtui.analysis.columns import PRINTED_HEAD
from fwtui.learn.questions import AnswerBar, QuestionAnswer, cue
from fwtui.sessions import reader
from fwtui.stream import events
from fwtui.tui import filmed, render
from fwtui.tui.export import KINDS, ExportKind, encode
from fwtui.tui.export.animation import animation
from fwtui.tui.export.capture import MAX_FRAMES, FilmClock, moments
from fwtui.tui.export.cast import cast
from fwtui.tui.export.drawing import HEIGHT, WIDTH, boxes, row_svg
from fwtui.tui.export.film import SMALL, Film, FilmCut, FilmFrame, FilmHotspot, FilmStop, FilmStretch, FilmWarps, Ink, Span
from fwtui.tui.export.page import page

EVIL = (
    "</script><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "&lt;b&gt;]]><!-- --> ${title} $$ {0} %s",
    "a\x1b[2J\x07b\x00c\x9b31m\ufffe",
    "javascript:alert(1)//",
    "漢字 ▶ é 🂡",
)


def played(path: Path, cut: FilmCut, size: tuple[int, int] = (80, 24)) -> Film:
    return filmed(path, reader.load(path), size, cut)


def by_hand(words: str = "words", frames: int = 3) -> Film:
    """Return a film of two lines in which only the second changes; `words` is used for every text."""
    inks = (Ink("#ffffff", "#000000"), Ink("#00ff00", "#222222", bold=True, strike=True))
    rows = [(Span(words, 0), Span(" ━█", 1)), *[(Span(f"frame {number}", 0),) for number in range(frames)]]
    shown = [FilmFrame(2.0 * number, 1.0 * number, (0, number + 1), number == 0) for number in range(frames)]
    part = AnswerBar("a", words, 0.5, words)
    stops = [
        FilmStop(2.0, 1.0, cue(f"@phases ?phase {words}"), QuestionAnswer(words, None, ("a",), (part,)), (0, 2), (0, 3)),
        FilmStop(2.0, 1.0, cue(f"? {words}"), None, (0, 2), ()),
        FilmStop(4.0, 2.0, cue(words), words, (0, 3), (0, 1)),
    ]
    return Film(
        width=40,
        height=2,
        ground="#000000",
        dark=True,
        title=words,
        origin=words,
        problems=(words,),
        inks=inks,
        rows=rows,
        frames=shown,
        duration=frames - 1.0,
        runs=[FilmStretch(1, words, words, words, 0.0, 1.0, (0.0, 2.0), False)],
        stops=stops,
        directed=True,
        head=("run", words),
        numbers=frozenset({1}),
        table=[("1", words)],
        warps=[FilmWarps(1, words, [FilmHotspot(words, words, words, words, words)])],
        left_out=(words,),
    )


class Read(html.parser.HTMLParser):
    """Parser of a page: its elements with attributes, and its texts by element."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.words.setdefault(self._open, []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag]


def payload(text: str) -> dict[str, Any]:
    """Return the film in a page, with rows and frames unpacked as its script does."""
    packed = re.search(r'id="film">([A-Za-z0-9+/=]+)</script>', text)
    assert packed is not None
    found = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    for size in found["sizes"]:
        spread(size)
    return found


def spread(size: dict[str, Any]) -> None:
    size["rows"] = [None if row is None else "".join(size["parts"][part] for part in row) for row in size["rows"]]
    recorded, played, lines = 0, 0, dict[int, int]()
    for place, (more, later, *changes) in enumerate(size["frames"]):
        recorded, played = recorded + more, played + later
        lines = lines | dict(zip(changes[::2], changes[1::2], strict=True))
        size["frames"][place] = [recorded / 1000, played / 1000, [lines[y] for y in sorted(lines)]]


def screen(events_: Iterator[list[Any]], width: int, height: int) -> str:
    """Return the text of a terminal after those events of a cast."""
    rows = [""] * height
    for _, kind, text in events_:
        for y, row in re.findall(r"\x1b\[(\d+);1H((?:(?!\x1b\[\d+;1H).)*)", text if kind == "o" else "", re.DOTALL):
            rows[int(y) - 1] = re.sub(r"\x1b\[[\d;]*m", "", row)
    assert all(len(row) <= width for row in rows)
    return "\n".join(row.rstrip() for row in rows).rstrip("\n") + "\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Film]:
    path = write_session(tmp_path_factory.mktemp("film") / "three-runs.fwt.jsonl", scenes.gpu_session())
    return path, played(path, FilmCut(rate=0.5))


class TestCapture:
    def test_the_last_frame_is_what_render_shows(self, recorded: tuple[Path, Film], tmp_path: Path) -> None:
        path, film = recorded
        done = next(event.t for event in scenes.gpu_session() if isinstance(event, events.RunDone))
        ended = next(frame for frame in film.frames if frame.recorded == round(done, 3))
        for at, frame, said, key in ((None, film.frames[-1], "‖ paused ", "Play"), (done, ended, "▶ playing", "Pause")):
            render(path, at, (80, 24), tmp_path / "screen.txt")
            shown = (tmp_path / "screen.txt").read_text().replace("‖ paused ", said).replace("Play", key)
            assert film.text(frame.lines).split() == shown.split()

    def test_every_run_begins_and_ends_in_a_frame_of_its_own(self, recorded: tuple[Path, Film]) -> None:
        _, film = recorded
        kept = events.RunStarted | events.RunDone | events.Marker
        keys = [event.t for event in scenes.gpu_session() if isinstance(event, kept)]
        there = [frame.recorded for frame in film.frames if frame.key]
        assert all(any(abs(t - key) < 2e-3 for t in there) for key in keys) and len(there) <= len(keys) + 2
        assert [(run.run, run.kernel, run.bad) for run in film.runs] == [
            (1, "naive", False),
            (2, "katz-kider", False),
            (3, "katz-kider", False),
        ]
        for run in film.runs:  # to the digit: who goes to where it begins sees it
            shown = [frame for frame in film.frames if frame.played <= run.begin][-1]
            assert f"RUN {run.run}" in film.text(shown.lines)
        assert film.frames[-1].played == film.duration
        assert film.head[0] == PRINTED_HEAD[0] and [row[0] for row in film.table] == ["1", "2", "3"]
        assert [stop.cue.body for stop in film.stops] == ["now with tiles in shared memory"] and not film.directed

    def test_the_stops_of_a_lecture_have_the_answers_of_its_runs(self) -> None:
        film = played(LECTURE, FilmCut(begin=8.0, end=16.0, rate=4))
        asked = next(stop for stop in film.stops if stop.cue.asks)
        assert isinstance(asked.answer, QuestionAnswer) and asked.answer.text == "90.3 %: 4.35 TB/s of 4.81 TB/s"
        before, after = film.text(asked.lines), film.text(asked.answered)
        assert "peak bandwidth" in before and asked.answer.text not in before and asked.answer.text in after
        assert "‖ paused" in before and "▶ playing" in film.text(film.frames[-1].lines), "it stops at a marker alone"
        assert [run.run for run in film.runs] == [1, 2] and film.runs[0].begin == 0.0
        assert 0 <= film.frames[0].played < film.duration < 5, "the cut is all there is"
        assert [payload(page(one))["directed"] for one in (film, replace(film, stops=[]))] == [True, False], "opens at a marker"

    def test_the_page_has_the_hotspots_of_sampled_runs(self, tmp_path: Path) -> None:
        told = scenes.sampled_session(short_scoreboard=60, selected=40)
        film = played(write_session(tmp_path / "sampled.fwt.jsonl", told), FilmCut(begin=told[-1].t))
        (one,) = film.warps
        said = "run 3, Katz-Kider: warps stall on short scoreboard (shared memory) in 60 % of PC samples, most at mine.py:9"
        line = ("remaining tiles", "mine.py:9", "100 %", "short scoreboard (shared memory)", "best = min(best, via)")
        assert one == FilmWarps(3, said, [FilmHotspot(*line)])
        assert {said, *line} <= {word for words in Read(page(film)).words.values() for word in words}

    def test_a_session_of_nothing(self, tmp_path: Path) -> None:
        film = played(write_session(tmp_path / "none.fwt.jsonl", [scenes.header(), scenes.NO_GPU]), FilmCut())
        assert "No run has begun yet" in film.text(film.frames[-1].lines) and not film.table
        for writer in (page, cast, animation):
            assert writer(film)


class TestMoments:
    def session(self, seconds: float, runs: int) -> list[events.Event]:
        """Return a session with telemetry at 2 Hz and evenly spaced runs."""
        told: list[events.Event] = [events.Telemetry(t=t / 2) for t in range(int(2 * seconds) + 1)]
        for run in range(runs):
            t = (run + 0.1) * seconds / runs
            told += [
                run_started(scenes.experiment("naive", 64), run, t, backend="cuda"),
                events.RunDone(t=t + 0.3 * seconds / runs, run=run, outcome="cancelled"),
            ]
        return [scenes.header(), *sorted(told, key=lambda event: event.t)]

    @pytest.mark.parametrize(("seconds", "runs"), [(10.0, 2), (20_000.0, 3), (50.0, 3000), (0.0, 1)])
    def test_frames_are_bounded_and_include_the_end(self, tmp_path: Path, seconds: float, runs: int) -> None:
        loaded = reader.load(write_session(tmp_path / "long.fwt.jsonl", self.session(seconds, runs)))
        clock = FilmClock(loaded, FilmCut(gap=None))
        found = moments(loaded, clock, 5)
        assert len(found) <= MAX_FRAMES + 2 * min(runs, 3) + 2 and found[-1].recorded == loaded.duration
        times = [moment.played for moment in found]
        assert times == sorted(times) and times[-1] == clock.duration

    def test_idle_gaps_are_short_and_speed_makes_all_of_it_shorter(self, tmp_path: Path) -> None:
        loaded = reader.load(write_session(tmp_path / "gaps.fwt.jsonl", self.session(100.0, 2)))
        whole, short, fast = (
            FilmClock(loaded, cut).duration for cut in (FilmCut(gap=None), FilmCut(gap=1.0), FilmCut(gap=1.0, speed=4.0))
        )
        assert whole == pytest.approx(100.0) and short < 10 and fast == pytest.approx(short / 4)
        clock = FilmClock(loaded, FilmCut(begin=50.0, gap=1.0))
        assert clock.played(50.0) == 0.0 and clock.recorded(clock.played(80.0)) == pytest.approx(80.0, abs=0.1)


class TestPage:
    @pytest.mark.parametrize("words", EVIL)
    def test_no_word_of_a_session_is_markup(self, words: str) -> None:
        text, plain = page(by_hand(words)), page(by_hand("words"))
        read, usual = Read(text), Read(plain)
        found, wanted = ([(tag, set(has)) for tag, has in r.elements if tag != "text"] for r in (read, usual))
        assert found == wanted, "but for letters that stand alone"
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
        for row in payload(text)["sizes"][0]["rows"]:
            assert {element.tag for element in ElementTree.fromstring(f"<g>{row}</g>").iter()} <= {"g", "rect", "path", "text"}

    def test_the_page_loads_nothing_from_elsewhere(self, recorded: tuple[Path, Film]) -> None:
        path, film = recorded
        text = page(film)
        read = Read(text)
        outside = [value for _, found in read.elements for name, value in found.items() if name in ("src", "href", "action")]
        assert all(value is not None and value.startswith(("#", "data:,")) for value in outside)
        assert "://" not in text.replace("http://www.w3.org/2000/svg", "") and "@import" not in text and "url(" not in text
        policy = next(found["content"] for found in read.all("meta") if found.get("http-equiv"))
        assert policy is not None and policy.startswith("default-src 'none'")
        assert "'unsafe-inline'" not in policy.partition("script-src")[2]
        assert str(path.parent) not in text + json.dumps(payload(text))

    def test_the_runs_are_an_accessible_table(self, recorded: tuple[Path, Film]) -> None:
        read = Read(page(recorded[1]))
        assert read.all("html")[0]["lang"] == "en" and len(read.all("h1")) == 1 and len(read.all("caption")) == 1
        heads = read.all("th")
        assert [found["scope"] for found in heads] == ["col"] * len(PRINTED_HEAD) + ["row"] * 3
        assert sum("colspan" not in cell for cell in read.all("td")) == 3 * (len(PRINTED_HEAD) - 1)
        named = {"aria-label", "title"}
        assert all(named & set(found) for found in read.all("button") if found.get("type") == "button")

    def test_the_page_plays_the_frames_in_both_sizes(self, recorded: tuple[Path, Film]) -> None:
        film = filmed(recorded[0], reader.load(recorded[0]), (100, 30), FilmCut(begin=8.0, rate=0.2), small=True)
        assert [(one.width, one.height) for one in film.sizes] == [(100, 30), SMALL]
        assert len(film.thinned().sizes[1].frames) <= len(film.sizes[1].frames)
        for size, one in zip(payload(page(film))["sizes"], film.sizes, strict=True):
            for (recorded_at, played_at, lines), frame in zip(size["frames"], one.frames, strict=True):
                assert (recorded_at, played_at) == (frame.recorded, frame.played)
                assert "\n".join(size["texts"][line] for line in lines).rstrip("\n") + "\n" == one.text(frame.lines)
                assert [size["rows"][line] for line in lines] == [row_svg(one.rows[line], one) for line in frame.lines]


class TestCast:
    def test_the_cast_plays_the_same_screens(self, recorded: tuple[Path, Film]) -> None:
        film = recorded[1]
        head, *told = map(json.loads, cast(film).splitlines())
        assert (head["version"], head["width"], head["height"]) == (2, 80, 24)
        assert [event[0] for event in told] == sorted(event[0] for event in told) and {event[1] for event in told} == {"o", "m"}
        for frame in film.frames:
            assert screen((event for event in told if event[0] <= frame.played), 80, 24) == film.text(frame.lines)
        assert cast(by_hand()).count("[1;1H") == 1 and cast(by_hand()).count("[2;1H") == 3, "of a screen only what changed"

    @pytest.mark.parametrize("words", EVIL)
    def test_no_word_of_a_session_moves_the_cursor(self, words: str) -> None:
        told = cast(by_hand(words))
        for line in told.splitlines()[1:]:
            _, kind, text = json.loads(line)
            assert not re.search("[\x00-\x1f\x7f-\x9f]", re.sub(r"\x1b\[(\?25l|2J|[\d;]+[Hm])", "", text)), kind


class TestAnimation:
    @pytest.mark.parametrize("words", EVIL)
    def test_the_svg_is_well_formed_and_has_no_script(self, words: str) -> None:
        text = animation(by_hand(words))
        root = ElementTree.fromstring(text)
        kinds = {element.tag.partition("}")[2] for element in root.iter()}
        assert kinds <= {"svg", "title", "style", "rect", "defs", "g", "use", "path", "text"}
        assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
        assert "://" not in text.replace("http://www.w3.org/2000/svg", "") or "://" in words

    def test_each_line_jumps_from_row_to_row(self) -> None:
        text = animation(by_hand())
        assert "@keyframes k0" not in text and "animation-name:k1" in text, "only the second line changes"
        steps = re.findall(r"([\d.]+)%\{transform:translate\((-?\d+)px\)\}", text)
        assert [(float(at), int(x) / -400) for at, x in steps] == [(0.0, 0), (16.67, 1), (33.33, 2), (100.0, 2)]
        assert "prefers-reduced-motion" in text

    def test_repeated_parts_of_lines_are_drawn_once(self) -> None:
        film = by_hand()
        rows = [(Span("stays ", 1), Span(words, 0)) for words in ("again", "new", "again ", "last")]
        film = replace(film, rows=rows, frames=[frame._replace(lines=(y, y + 1)) for y, frame in enumerate(film.frames)])
        text = animation(film)
        assert [text.count(f">{words}<") for words in ("stays", "again", "new", "last")] == [2, 1, 1, 1], "on two lines"
        assert text.count("<use ") == 5


@pytest.mark.parametrize("character", "─━│┃┏┓┗┛╸╺╹╻├┣╋▀▄█▌▐▁▇▏▕▚░⠁⣿")
def test_lines_and_blocks_are_drawn_in_their_cell(character: str) -> None:
    drawn = boxes(character)
    assert drawn
    for x, y, width, height in drawn:
        assert 0 <= x < x + width <= WIDTH and 0 <= y < y + height <= HEIGHT


def test_lines_meet_those_of_the_next_cell() -> None:
    for left, right in ("━┓", "┏━", "╺╸", "─┤", "├─"):
        ends = {(y, height) for x, y, width, height in boxes(left) if x + width == WIDTH}
        begins = {(y, height) for x, y, width, height in boxes(right) if x == 0}
        assert ends and ends == begins, left + right


def test_a_film_that_is_too_large_loses_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    film = by_hand(frames=101)
    whole, kept = encode(film, ".cast")
    assert kept is film
    monkeypatch.setitem(KINDS, ".cast", ExportKind("cast", "", 5, len(whole) // 2))
    content, kept = encode(film, ".cast")
    assert len(content) <= len(whole) // 2 and 2 < len(kept.frames) < 60
    assert kept.text(kept.frames[-1].lines) == film.text(film.frames[-1].lines) and kept.frames[0].key
    assert len(kept.rows) < len(film.rows) and [stop.cue for stop in kept.stops] == [stop.cue for stop in film.stops]


class TestCommand:
    @pytest.fixture
    def export(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
        path = write_session(tmp_path / "s.fwt.jsonl", [scenes.header(), scenes.NO_GPU])
        monkeypatch.chdir(tmp_path)

        def do(*words: str) -> tuple[int, str]:
            return main(["export", str(path), *words]), capsys.readouterr().err

        return do

    def test_the_suffix_chooses_the_type_of_film(self, export: Callable[..., Any], tmp_path: Path) -> None:
        code, words = export("-o", "a.cast", "--size", "60x16")
        assert code == 0 and words.count("\n") == 1 and words.startswith("fwtui: a.cast is a recording for asciinema: "), words
        text = (tmp_path / "a.cast").read_text()
        assert text.startswith('{"version": 2, "width": 60, "height": 16,')
        code, words = export("-o", "a.cast")
        assert code == 2 and "exists already" in words
        code, words = export("-o", "a.svg")
        assert code == 0 and "a.svg is an animated picture: " in words
