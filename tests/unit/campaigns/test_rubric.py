"""What a rubric says, and how points come about; and a rubric of a few small graphs."""

import re
from pathlib import Path

import msgspec
import pytest
from own_files import written

import fwtui_kernels
from fwtui.__main__ import main
from fwtui.campaigns.grading.points import grade, points_for, timeable
from fwtui.campaigns.grading.rubric import EXAMPLE, Rubric, read, rubric
from fwtui.common.errors import Refused
from fwtui.stream.grades import GradedGraph, Judgement


def test_the_example_is_a_rubric_and_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "--example-rubric"]) == 0
    path = tmp_path / "rubric.toml"
    path.write_text(capsys.readouterr().out)
    assert path.read_text() == EXAMPLE.read_text()
    found = read(path)
    assert sum(kind.points for kind in found.kinds) + (found.timing.points if found.timing else 0) == 100
    graphs, again, others = ([graph for kind in found.draw(seed).kinds for graph in kind.graphs()] for seed in (1, 1, 2))
    assert {graph.dtype for graph in graphs} == {"float32", "int32"} and any(graph.low < 0 for graph in graphs)
    assert {graph.connected for graph in found.draw(1).kinds[0].graphs()} == {True}
    assert graphs == again and not {graph.seed for graph in graphs} & {graph.seed for graph in others}
    assert all(200 <= graph.n <= 400 for graph in graphs[10:12]) and len(graphs) == len(others)


def test_what_the_documentation_says_of_a_rubric_is_one() -> None:
    text = (Path(fwtui_kernels.__file__).parents[1] / "README.md").read_text()
    (quoted,) = re.findall(r"```toml\n(.*?)```", text[text.index("### Grading a course") :], re.DOTALL)
    assert rubric(quoted, "README.md").kinds[0].points == 15


SECOND = r"graphs\[2\]"
SIZES = "a list of whole numbers from 1 to 2048, or of ranges .*"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("seconds = 4", "secs = 4", r": there is no key 'limits.secs'; choose one of seconds, memory, output"),
        ("seconds = 4", "seconds = 0", r": limits.seconds is '0'; it must be a number of seconds from 0.5 to 3600"),
        ("points = 8", "", r": graphs\[1\].points is missing; it is a number from 0 to 10000"),
        ("n = [9]", "n = [4000]", rf": {SECOND}.n is '\[4000\]'; it must be {SIZES}"),
        ("n = [9]", "n = []", rf": {SECOND}.n is '\[\]'; it must be {SIZES}"),
        ("n = [9]", 'n = ["9..4"]', rf": {SECOND} \('unreachable'\): n has 9..4; write a range from a smaller to .*"),
        ("seeds = [3]", "seeds = 0", rf": {SECOND}.seeds is '0'; it must be a list of .*, or how many are drawn"),
        ("unreachable = true", "unreachable = 1", rf": {SECOND}.unreachable is '1'; it must be true or false"),
        ("density = 0.1", 'dtype = "int8"', rf": {SECOND}.dtype is 'int8'; it must be one of .*"),
        ("density = 0.1", "high = 0", rf": {SECOND} \('unreachable'\): low is 1; it must be at most high, which is 0"),
        ("density = 0.1", 'low = -2\ndtype = "int16"', rf": {SECOND} \('unreachable'\): int16 takes no negative .*"),
        ("naive", "naiv", r": time.against is 'naiv'; it must be a rung that `fwtui kernels` lists, such as naive"),
        ("zero = 3.0", "zero = 1.0", r": time.zero is 1; it must be more than time.full, which is 1"),
        ("[[graphs]]", "[graphs]", r" is not TOML: .*; correct that line"),
        ("limits", "pass = 2\nlimits", r": pass is '2'; it must be a number from 0 to 1"),
        ('name = "unreachable"', 'name = "random"', r": two tables \[\[graphs\]\] have the same name; give each its own"),
    ],
)
def test_a_mistake_in_a_rubric_is_one_sentence_with_the_key_and_what_is_allowed(old: str, new: str, sentence: str) -> None:
    assert old in SMALL
    with pytest.raises(Refused) as refusal:
        rubric(SMALL.replace(old, new, 1), "r.toml")
    assert re.fullmatch(f"r.toml{sentence}", str(refusal.value)), str(refusal.value)


def test_a_rubric_that_is_wrong_or_not_there_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.toml").write_text("pass = 3")
    for file in (tmp_path / "r.toml", tmp_path / "none.toml"):
        assert main(["grade", str(written(tmp_path / "hw")), "--against", str(file)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1


RIGHT, WRONG, LEFT_OUT = GradedGraph(True), GradedGraph(False, "n = 7, seed 1: wrong"), GradedGraph(None)


def test_a_kind_gives_its_points_in_equal_parts_and_what_could_not_be_tried_is_not_counted() -> None:
    judgement = Judgement(kinds=((RIGHT, RIGHT, WRONG, LEFT_OUT), (LEFT_OUT,)), simulated=True)
    found = grade(small(), "a.py", judgement, None, clock=False)
    assert (found.points, found.of) == (round(8 * 2 / 3, 2), 8) and found.passed and found.time_points is None
    assert found.verdict == "right on 2 of 3 graphs; n = 7, seed 1: wrong"
    right = Judgement(kinds=((RIGHT, RIGHT, LEFT_OUT, LEFT_OUT), (LEFT_OUT,)), simulated=True)
    found = grade(small(), "a.py", right, None, clock=True)
    assert not timeable(right) and (found.points, found.of) == (8, 8)
    assert found.verdict == "right on all 2 graphs; the simulator has no time"
    nothing = grade(small(), "a.py", Judgement(kinds=((LEFT_OUT,) * 4, (LEFT_OUT,)), simulated=True), None, clock=True)
    assert not nothing.passed and nothing.verdict == "nothing could be tried here; it takes a GPU"


def test_time_gives_points_in_proportion_and_none_to_what_is_wrong() -> None:
    timing = small().timing
    assert timing is not None
    assert [points_for(timing, share) for share in (0.5, 1.0, 2.0, 3.0, 9.0, None)] == [5, 5, 2.5, 0, 0, 0]
    right = Judgement(kinds=((RIGHT,) * 4, (RIGHT,)))
    found = grade(small(), "a.py", right, Judgement(seconds=0.004, rung_seconds=0.002), clock=True)
    assert timeable(right) and (found.points, found.of, found.share) == (12.5, 15, 2.0)
    unlike = grade(small(), "a.py", msgspec.structs.replace(right, unlike_watch="n = 1: wrong"), None, clock=True)
    assert not unlike.passed and unlike.verdict == "right on all 5 graphs here, and not of `fwtui watch`: n = 1: wrong"
    assert found.verdict == "right on all 5 graphs; 2.00 times the time of naive"
    wrong = Judgement(kinds=((RIGHT,) * 4, (WRONG,)))
    found = grade(small(), "a.py", wrong, None, clock=True)
    assert not timeable(wrong) and (found.points, found.of) == (8, 15)
    fouled = grade(small(), "a.py", right, Judgement(foul="it deletes or changes a.py, which is put back"), clock=True)
    assert (fouled.points, fouled.of, fouled.passed) == (0, 15, False) and fouled.verdict.startswith("it deletes")


SMALL = """
limits = {seconds = 4, memory = 1}
[[graphs]]
name = "random"
points = 8
n = [2, 7]
seeds = [1, 2]
[[graphs]]
name = "unreachable"
points = 2
n = [9]
density = 0.1
unreachable = true
seeds = [3]
[time]
points = 5
n = 64
against = "naive"
full = 1.0
zero = 3.0
"""


def small() -> Rubric:
    return rubric(SMALL, "r.toml")
