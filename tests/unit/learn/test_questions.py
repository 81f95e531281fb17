"""Questions of the course: answers come from runs; guesses are read and compared with them."""

import msgspec
import pytest
from course_files import BOTH
from msgspec.structs import replace

from fwtui.analysis.compare import ComparedRun
from fwtui.common.errors import Refused
from fwtui.learn.placeholders import FILLED, value_of
from fwtui.learn.questions import KINDS, parse_guess, verdict
from fwtui.sessions.library import load_model
from fwtui.stream.model import Model
from fwtui.stream.run import Run


def entrant(model: Model, run: Run | int) -> ComparedRun:
    return ComparedRun(model, model.runs[run] if isinstance(run, int) else run)


class TestQuestions:
    @pytest.fixture(scope="class")
    def model(self) -> Model:
        return load_model(BOTH)[0]

    def test_the_limiting_resource_and_what_each_would_allow(self, model: Model) -> None:
        answer = KINDS["limiter"].answer(entrant(model, 8), None)
        assert answer.right == ("warps",) and answer.text == "All 64 warps fit; registers are just enough"
        assert verdict(KINDS["limiter"], "shared memory", answer) == "Not shared memory."
        allowed = {part.key: part.amount for part in answer.parts}
        assert allowed["registers"] == allowed["warps"] == 64 and allowed["shared memory"] > 64
        fewer = {"registers": 56, "blocks": 4, "warps": 32, "limiters": ("registers",)}
        crowded = tuple(msgspec.structs.replace(o, **fewer) for o in model.runs[8].occupancies)
        answer = KINDS["limiter"].answer(entrant(model, replace(model.runs[8], occupancies=crowded)), None)
        assert answer.right == ("registers",) and "32 of 64 warps" in answer.text
        assert {part.key: part.amount for part in answer.parts} == {**allowed, "registers": 32}
        assert KINDS["limiter"].answer(entrant(model, 4), None).right == ("warps",)
        told = model.runs[8].occupancies
        for occupancies in ((), tuple(msgspec.structs.replace(o, threads=0) for o in told)):
            with pytest.raises(Refused, match="has no theoretical occupancy"):
                KINDS["limiter"].answer(entrant(model, replace(model.runs[8], occupancies=occupancies)), None)

    def test_a_speed_up_needs_two_runs_of_one_graph(self, model: Model) -> None:
        ask = KINDS["speedup"].answer
        found = ask(entrant(model, 4), entrant(model, 8)).number
        assert found is not None and found < 1, "slower is said as well"
        for before, words in ((None, "has no baseline"), (replace(model.runs[4], n=1024), "are not compared: n = ")):
            with pytest.raises(Refused, match=words):
                ask(entrant(model, 8), entrant(model, before) if before is not None else None)
        done = model.runs[8].done
        assert done is not None
        never = msgspec.structs.replace(done, median=5e-324)
        with pytest.raises(Refused, match="has numbers that cannot be compared"):
            ask(entrant(model, replace(model.runs[8], done=never)), entrant(model, 4))
        with pytest.raises(Refused, match="has no time"):
            ask(entrant(model, 8), entrant(model, replace(model.runs[4], done=None, samples=())))

    @pytest.mark.parametrize(
        ("kind", "text", "value"),
        [
            *(("seconds", "20", 20.0), ("seconds", "20 s", 20.0), ("seconds", "5ms", 0.005), ("seconds", "2 MIN", 120.0)),
            *(("speedup", "3", 3.0), ("speedup", "2.5x", 2.5), ("peak", "40 %", 0.4), ("limit", "7", 0.07)),
        ],
    )
    def test_guesses(self, kind: str, text: str, value: float) -> None:
        assert parse_guess(KINDS[kind], text) == pytest.approx(value)

    @pytest.mark.parametrize("text", ["", "-3", "three", "3 apples", "1e9", "nan", "inf", "9" * 12, "٣", "3 %"])
    def test_invalid_guesses_are_refused(self, text: str) -> None:
        with pytest.raises(Refused, match=r"^type a factor such as 3, not "):
            parse_guess(KINDS["speedup"], text)

    def test_guesses_are_rated_and_placeholders_filled_or_refused(self, model: Model) -> None:
        kind, phase = KINDS["speedup"], KINDS["phase"]
        answer = kind.answer(entrant(model, 8), entrant(model, 4))
        assert answer.number is not None
        assert verdict(kind, answer.number, answer) == "Close." == verdict(kind, answer.number * 1.2, answer)
        assert verdict(kind, answer.number * 3, answer) == "3.00 times too high."
        assert verdict(kind, answer.number / 2, answer) == "2.00 times too low."
        assert verdict(kind, 0.0, answer) == ""
        assert verdict(phase, "rest", phase.answer(entrant(model, 8), None)) == "Right."
        assert verdict(phase, "pivot", phase.answer(entrant(model, 8), None)) == "Not pivot."
        run, before = entrant(model, 8), entrant(model, 4)
        filled = {name: value_of(name, run, before) for name in FILLED if not name.startswith("limit")}
        assert filled["time"] == "31.4 ms" and filled["rate"] == "2.19 trillion" and filled["relaxations"] == "68.7 billion"
        assert filled["registers"] == "32" and filled["launches"] == "384"
        assert value_of("before.tile", before, run) == "32"
        assert value_of("before.time", before, None) is None and value_of("tile", before, None) is None
