"""Lectures: the cues in markers, the position of the player, and markers added to recordings."""

import fcntl
from pathlib import Path

import pytest
from recorded_sessions import SESSION

from fwtui.__main__ import main
from fwtui.learn import notes
from fwtui.learn.questions import KINDS, Cue, cue, cue_of
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model
from fwtui.sessions.markers import Mark, mark
from fwtui.sessions.player import Player
from fwtui.sessions.reader import load
from fwtui.stream.events import Marker, RunStarted

LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl.gz"


def test_words_panels_and_questions_of_others() -> None:
    plain = ("tiles from here", "why?", "@nothing here", "?nokind what", "a @phases ?phase", "@phasesx y", "mail @ home", "")
    for text in plain:
        assert cue(text) == Cue(text)
    for text in (plain[0], "@matrix words", "@phases ?phase", "? What now?", "@total ?speedup How much?", "@source 7 ?phase"):
        assert cue(cue(text).text) == cue(text), "its text says the same again"
    assert cue("@matrix In tiles now.") == Cue("In tiles now.", "matrix")
    assert cue("@matrix") == Cue("", "matrix")
    assert cue("@source 12-20 Here 4") == Cue("Here 4", "source", first=12, last=20)
    assert cue("@source 4 ?phase").span == "4" and cue("@matrix 12-20").body == "12-20"
    assert cue("@matrix").directed and cue("words", "Title").directed and not cue("words").directed
    assert cue("@runs ? What would you try next?") == Cue("What would you try next?", "runs", True)
    assert cue("?") == Cue("", "", True)
    for kind in KINDS.values():
        assert cue(f"@phases ?{kind.name} What now?") == Cue("What now?", "phases", True, kind)
        assert cue(f"@total ? {kind.ask.upper()}") == Cue(kind.ask.upper(), "total", True, kind), "by its words"
    assert cue("? Why?", answer="So.").answered and not cue("? Why?").answered and not cue("Why?", answer="So.").answered


class TestPlayer:
    def test_playback_waits_at_a_marker(self) -> None:
        player = Player(load(LECTURE).lines)
        places = [i for i, line in enumerate(player.lines) if isinstance(line.event, Marker)]
        assert player.marker is None
        for number, place in enumerate(places, 1):
            player.seek_marker(number)
            assert player.index == place + 1
            standing = player.marker
            assert standing is not None and standing[:2] == (number, len(places)) and standing[2] is player.lines[place].event
        player.seek_marker(4)
        player.step(1)
        assert player.marker is None

    def test_playing_stops_at_each_of_several_at_one_moment(self) -> None:
        player, numbers = Player(load(LECTURE).lines), []
        player.stops = True
        for begin in range(9):
            player.play()
            player.tick(200.0 * begin)
            player.tick(200.0 * begin + 100)
            assert player.marker is not None
            numbers.append(player.marker[0])
        assert numbers == [1, 2, 3, 4, 5, 6, 7, 8, 9]


class TestMark:
    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = str(tmp_path / "l.fwt.jsonl")
        assert main(["mark", str(SESSION), "--at", "end 8", "@phases ?phase", "--at", "1.5", "so far", "-o", out]) == 0
        assert "2 markers more" in capsys.readouterr().err
        assert [e.event.text for e in load(out).lines if isinstance(e.event, Marker)] == ["so far", "@phases ?phase"]
        assert main(["mark", out, "--at", "2", "so far", "-o", str(tmp_path / "one.fwt.jsonl")]) == 0
        assert "1 marker more is in" in capsys.readouterr().err
        torn = tmp_path / "torn.fwt.jsonl"
        torn.write_bytes(Path(out).read_bytes()[:-200])
        assert main(["mark", str(torn), "--at", "1", "so far", "-o", str(tmp_path / "less.fwt.jsonl")]) == 1
        assert "events lost in the source are missing here too" in capsys.readouterr().err, "a reason for the exit code"
        for place, words in (("run x", "w"), ("-1", "w"), ("1e3", "w"), ("end 8", " "), ("end 8", "w" * 201)):
            assert main(["mark", str(SESSION), "--at", place, words, "-o", str(tmp_path / "no")]) == 2
            assert capsys.readouterr().err.count("\n") == 1
        assert main(["mark", str(SESSION), "--at", "end 8", "x", "-o", out]) == 2, "nothing is overwritten"

    def test_a_cue_at_the_end_of_a_run_follows_its_last_event(self, tmp_path: Path) -> None:
        session = shipped_folder() / "h200-n4096-naive-blocked.fwt.jsonl.gz"
        mark(session, [(Mark(run=1, end=True), Marker(t=0.0, text="x"))], tmp_path / "l.fwt.jsonl")
        lines = [line.event for line in load(tmp_path / "l.fwt.jsonl").lines]
        place = next(i for i, event in enumerate(lines) if isinstance(event, Marker))
        assert not isinstance(lines[place - 1], RunStarted) and isinstance(lines[place + 1], RunStarted)


class TestNotes:
    """Cue cards in a text file."""

    def test_a_card_has_a_place_and_a_text(self) -> None:
        text = """# A lecture

        Whatever stands here is for the lecturer.
        ## 12.5s
        Two lines
        are one: a text.
        ## run 2 : Now tiles
        ## after run 2
        point: matrix
        \\# is no heading here
        ## Run 3 end: Why?
        Question: What share of the peak is that?
        answer: peak
        ## run 3 end
        answer: phase
        ## run 3 end
        question: And now?
        answer: Registers.
        """
        title, cues = notes.parse(text.replace("\n", "\r\n"))
        assert title == "A lecture"
        places = [place._replace(source="") for place, _ in cues]
        assert places == [Mark(12.5), Mark(run=2), Mark(run=2, end=True), *[Mark(run=3, end=True)] * 3]
        assert [cue_of(marker) for _, marker in cues] == [
            Cue("Two lines are one: a text."),
            Cue("", title="Now tiles"),
            Cue("# is no heading here", "matrix"),
            Cue("What share of the peak is that?", asks=True, kind=KINDS["peak"], title="Why?"),
            Cue(KINDS["phase"].ask, asks=True, kind=KINDS["phase"]),
            Cue("And now?", asks=True, answer="Registers."),
        ]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "notes.md has no cue cards; begin each with a heading such as `## run 1 end`"),
            ("words", "notes.md has no cue cards"),
            ("## 1:30\nx", "notes.md, line 1: '1' is not a moment of a session; write 12.5s, run 2, run 2 end or after run 2"),
            ("## 12\nx", "line 1: '12' is not a moment"),
            ("## end 2 end\nx", "line 1: 'end 2 end' is not a moment"),
            ("## run 99999999999\nx", "line 1: 'run 99999999999' is not a moment"),
            ("## run 8\nx\n\n# Title", "line 4: only the title, before all cards, begins with #"),
            ("## run 8\nx\n### more", "line 3: only the title, before all cards, begins with #"),
            ("## run 8\npoint: nothing", "line 2: there is no panel 'nothing'; choose one of total, phases,"),
            ("## run 8\nquestoin: why?", "line 2: did you mean `question:`? Write \\ before 'questoin' for a plain line"),
            ("## run 8\nquestion:", "line 2: `question:` has no value"),
            ("## run 8\npoint: runs\npoint: total\nx", "line 3: this cue card already has a line `point:`"),
            ("## run 8\nx\nquestion: why?", "line 1: this cue card has a text and a question"),
            ("## run 8\nx\n## end 8\nanswer: no kind", "line 4: this answer has no question"),
            ("## run 8\npoint: runs", "line 1: this cue card is empty"),
            (
                "## run 8\nx\n## run 8 end\nanswer: speed",
                "line 4: did you mean `answer: speedup`? the run answers phase, speedup,",
            ),
            ("n" * 2001 + "\n## run 8\nx", "line 1: the line has 2,001 characters, more than 2,000"),
            ("## run 8\nx\n" + "notes: x\n" * 41, "line 1: the notes have more than 40 lines or 8,000 characters"),
            ("## run 8: " + "w" * 61, "line 1: the title has 61 characters; shorten it to 60"),
            ("## run 8\n" + "w " * 101, "line 1: the text has 201 characters; shorten it to 200"),
            ("## run 8\nquestion: " + "w" * 201, "line 2: the question has 201 characters; shorten it to 200"),
            ("## run 8\nx\n## run 5\nx", "notes.md, line 3: run 5 does not begin in this session; its runs are 3, 4, 7, 8"),
            ("## run 8\nx\n## run 5 end\nx", "notes.md, line 3: run 5 does not end in this session; its runs are 3, 4, 7, 8"),
            ("## 99s\nx", "notes.md, line 1: 99 s is outside this session of 10.6204 s; pass a time in this session"),
        ],
    )
    def test_an_invalid_card_is_refused_with_its_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, words: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("notes.md").write_text(text)
        assert main(["mark", str(SESSION), "--from", "notes.md", "-o", "l.fwt.jsonl"]) == 2
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1 and not Path("l.fwt.jsonl").exists()

    def test_files_that_are_no_text_and_options_that_conflict(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "latin.md").write_bytes("## run 8\nZürich".encode("latin-1"))
        (tmp_path / "long.md").write_text("## run 8\n" + "\n" * notes.LARGEST_FILE)
        (tmp_path / "there.md").write_text("mine")
        for words, said in (
            (("--from", "latin.md", "-o", "l"), "latin.md is not UTF-8 text; save it as UTF-8"),
            (("--from", "long.md", "-o", "l"), "long.md has more than 262,144 bytes"),
            (("--from", "none.md", "-o", "l"), "none.md cannot be read: no such file or directory"),
            (("--from", "there.md"), "--out is missing"),
            (("--to", "new.md", "-o", "l"), "--to writes a text file, not a session"),
            (("--to", "there.md"), "there.md exists already and is not overwritten"),
            ((), "one of the arguments --at --from --to is required"),
        ):
            session = LECTURE if "there.md" in words and "--to" in words else SESSION
            paths = [str(tmp_path / word) if word in ("l", "new.md") or word.endswith(".md") else word for word in words]
            assert main(["mark", str(session), *paths]) == 2
            assert said in capsys.readouterr().err
        assert {path.name for path in tmp_path.iterdir()} == {"latin.md", "long.md", "there.md"}

    def test_a_round_trip_equals_and_replaces_what_was_there(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = """# A lecture

## 1.25s
\\point: is a word here

## run 4: A title alone

## run 4 end: Why: a colon
point: meters
question: # What share?
answer: peak

## 10.5s
point: source 3-4
\\\\ is a backslash

## 10.55s
Three steps:
- the pivot
- its row and column

## 10.6s
\\- is a minus

## 10.61s
- a list alone

## run 8 end
question: And now?
answer: Registers.
notes: Wait.
notes: answer: is a word here

## run 8 end
question: Which share is that?
answer: \\peak
"""
        a, b, made, again = (tmp_path / name for name in ("a.md", "b.md", "made.fwt.jsonl", "again.fwt.jsonl"))
        a.write_text(text)
        assert main(["mark", str(SESSION), "--from", str(a), "-o", str(made)]) == 0
        assert "9 cue cards are in" in capsys.readouterr().err
        assert main(["mark", str(made), "--to", str(b)]) == 0 and b.read_text() == text
        assert main(["mark", str(made), "--to", str(made), "--force"]) == 2, "the recording is no place for its text"
        assert main(["mark", str(made), "--from", str(b), "-o", str(again)]) == 0
        assert again.read_bytes() == made.read_bytes()
        assert main(["mark", str(made), "--from", str(b), "-o", str(made), "--force"]) == 0, "a lecture is replaced in its place"
        assert again.read_bytes() == made.read_bytes()
        with open(made, "rb") as recorded:
            fcntl.flock(recorded, fcntl.LOCK_EX)
            assert main(["mark", str(made), "--from", str(b), "-o", str(made), "--force"]) == 2
        assert "made.fwt.jsonl is being recorded; wait for its end" in capsys.readouterr().err
        cues = [cue_of(line.event) for line in load(made).lines if isinstance(line.event, Marker)]
        assert cues[-1].answer == "peak" and cues[-1].kind is None
        assert ["Three steps:", "• the pivot", "• its row and column"] in [cue.lines for cue in cues]


SKELETONS = [pytest.param(name, marks=pytest.mark.slow) for name in ("h200-two-gpus", "h200-champion")]


@pytest.mark.parametrize("name", ["h200-n1024-naive-blocked", *SKELETONS])
def test_a_session_without_cue_cards_gives_a_skeleton_whose_questions_its_runs_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["mark", name, "--to", "a.md"]) == 0 and "a skeleton of cue cards is in a.md" in capsys.readouterr().err
    assert main(["mark", name, "--to", "a.md"]) == 2 and main(["mark", name, "--to", "a.md", "--force"]) == 0
    assert main(["mark", name, "--from", "a.md", "-o", "talk.fwt.jsonl"]) == 0
    model, _ = load_model(tmp_path / "talk.fwt.jsonl")
    asked = [said.kind for said in map(cue_of, model.markers) if said.kind is not None]
    begun = [marker for marker in model.markers if cue_of(marker).kind is None]
    assert {m.t for m in begun} >= {run.started for run in model.runs.values()} and any(m.notes for m in begun)
    assert len(asked) >= 2
    assert main(["mark", "talk.fwt.jsonl", "--to", "b.md"]) == 0
    before, after = (sorted(Path(text).read_text().split("\n\n")) for text in ("a.md", "b.md"))
    assert [card.strip() for card in after] == [card.strip() for card in before], "and the notes are in it"
    capsys.readouterr()
    assert main(["mark", name, "--from", "a.md", "-o", "talk.fwt.jsonl"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["mark", "talk.fwt.jsonl", "--from", "a.md", "--title", "Mine", "-o", "talk.fwt.jsonl", "--force"]) == 0
    assert load_model(tmp_path / "talk.fwt.jsonl")[0].header.title == "Mine"  # type: ignore[union-attr]
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", "b.md", "talk.fwt.jsonl"}


@pytest.mark.parametrize(
    ("place", "lines", "said"),
    [
        ("run 1", "200-220", "line 1: mine.py of run 1 has no line 200; choose a line up to"),
        ("run 1", "1-40", "line 1: mine.py of run 1 has no line 40; choose a line up to"),
        ("20s", "200", "mine.py of run"),
    ],
)
def test_a_card_about_lines_that_its_run_does_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, lines: str, said: str
) -> None:
    (tmp_path / "a.md").write_text(f"## {place}\npoint: source {lines}\nHere\n")
    out = tmp_path / "talk.fwt.jsonl"
    assert main(["mark", "lecture-own-kernel", "--from", str(tmp_path / "a.md"), "-o", str(out)]) == 2
    assert said in (words := capsys.readouterr().err) and words.count("\n") == 1 and not out.exists(), words
