"""Charts of any numbers in any size: readable, or replaced by a sentence."""

import gc
import math
from weakref import ref

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pressing import until
from textual.app import App, ComposeResult

from fwtui.common import units
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts import figure as figure_module
from fwtui.tui.charts.chart import Chart
from fwtui.tui.charts.drawing import Drawing, column_of, draw
from fwtui.tui.charts.figure import SHAPES, sign
from fwtui.tui.charts.scale import decimated, scale, ticks
from fwtui_kernels import registry, rungs

NS = (256.0, 512.0, 1024.0, 2048.0, 4096.0)
RATES = (1e10, 4e10, 1e11, 2e11, 2.5e11)
numbers = st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0, 5e-324, 1e15, 1e308, -1e308, math.inf, math.nan]))
sizes = st.tuples(st.integers(1, 60), st.integers(1, 16))


def rows(drawing: Drawing) -> list[str]:
    return ["".join(text for text, _ in row) for row in drawing.rows]


def curves(**x: object) -> Figure:
    axis = Axis("n", log=True, base=2, **x)  # type: ignore[arg-type]
    rate = Axis("relax/s", lambda value: units.scaled(value, ""), log=True)
    return Figure((Series("naive", NS, RATES), Series("tiled", NS, tuple(3 * r for r in RATES))), axis, rate)


@st.composite
def figures(pick: st.DrawFn) -> Figure:
    """Draw a figure with two mirrored series, a rule and odd axes."""
    points = pick(st.lists(st.tuples(numbers, numbers), max_size=12))
    xs, ys = (tuple(point[place] for point in points) for place in (0, 1))
    series = (Series("one", xs, ys), Series("two", ys, xs, points=False))
    low, high, yes = pick(numbers), pick(numbers), st.booleans()
    x = Axis("n", log=pick(yes), base=pick(st.sampled_from([2, 10])), low=low, high=high)
    rule = Rule(pick(st.floats()), "rule", pick(yes))
    return Figure(series, x, Axis("t", log=pick(yes), low=high), (rule,), pick(yes))


@settings(max_examples=120)
@given(figure=figures(), size=sizes)
def test_no_numbers_and_no_size_break_a_chart(figure: Figure, size: tuple[int, int]) -> None:
    drawing = draw(figure, *size)
    assert [len(row) for row in rows(drawing)] == [size[0]] * size[1]
    for stop in drawing.stops:
        assert -1e-6 <= stop.share <= 1 + 1e-6 and stop.points


@pytest.mark.parametrize(
    "values", [(), (None,), (math.nan, math.inf, -math.inf), (1e308, -1e308)], ids=["none", "gap", "nan, inf", "too large"]
)
def test_an_empty_chart_shows_a_sentence(values: tuple[float | None, ...]) -> None:
    drawing = draw(Figure((Series("a", tuple(range(len(values))), values),), empty="no run yet"), 30, 5)
    assert "no run yet" in rows(drawing)[2] and not drawing.stops


def test_a_figure_has_ticks_units_a_legend_and_its_rules() -> None:
    figure = curves()._replace(rules=(Rule(1e12, "limit 1 T relax/s"), Rule(1.02e12, ""), Rule(700, "break-even n 700", True)))
    shown = "\n".join(rows(draw(figure, 80, 20)))
    for words in ("relax/s", "① naive", "② tiled", "1 T┤", "100 G┤", "10 G┤", "limit 1 T relax/s", "┊ break-even n 700"):
        assert words in shown, words
    for tick in ("256", "512", "1024", "2048"):
        assert f" {tick} " in shown.split("\n")[-1]
    assert "╌╌╌" in shown and "①" in shown and "②" in shown
    counted = Figure((Series("a", (1.0, 2.0), (3.0, 4.0)),), Axis("pass", whole=True), Axis("time"))
    assert rows(draw(counted, 80, 12))[-1].split() == ["0", "1", "pass"], "what is counted has no halves"


def test_each_rule_has_its_label_even_if_two_are_in_one_row_or_the_rows_around_it_are_full() -> None:
    points = Series("a", (1.0, 10.0), (1.0, 100.0), listed=False)
    axes = Axis("a long title of this axis", log=True, ends=True), Axis("relax/s", log=True)
    for values in ((40.0, 41.0), (40.0, 15.0), (70.0, 40.0, 20.0)):
        rules = tuple(Rule(value, f"the ceiling {value}", short=f"c {value:.0f}") for value in values)
        drawing = draw(Figure((points,), *axes, rules), 70, 9)
        shown = "\n".join(rows(drawing))
        assert all(f"ceiling {value}" in shown or f"c {value:.0f}" in shown for value in values), shown
        assert rows(drawing)[-1].split()[-1] == "10" and " a long title of this axis " in rows(drawing)[-2]


@pytest.mark.parametrize("size", [(60, 24), (120, 40), (59, 24)])
def test_series_have_shapes_and_names_at_their_end_or_in_the_legend(size: tuple[int, int]) -> None:
    many = tuple(Series(f"kernel {k}", NS, tuple(r * (k + 1) for r in RATES)) for k in range(8))
    drawing = draw(Figure(many, Axis("n"), Axis("relax/s")), *size)
    shown = rows(drawing)
    assert all("".join(shown).count(f"kernel {k}") == 1 for k in range(8)) and "more" not in "".join(shown)
    assert all(sum(row.count(mark) for row in shown[drawing.top :]) >= 3 for mark in "①②③④⑤⑥⑦⑧")
    assert len(drawing.rows[0]) == 2 or size[0] < 60, "with room for a margin there is no legend"


def test_names_that_fit_are_whole_and_the_cursor_shows_the_others() -> None:
    points = tuple(Series(f"the long name of a kernel {k}", (1.0,), (1.0,), line=False) for k in range(20))
    drawing = draw(Figure(points, pointwise=True), 70, 12)
    shown = "".join(rows(drawing))
    told = [k for k in range(20) if f"the long name of a kernel {k} " in shown]
    assert shown.count("the long name") == len(told) > 2 and "…" not in shown and len(drawing.stops) == 20


def test_a_name_next_to_overlapping_marks_has_its_own_mark() -> None:
    points = [Series(kernel, (5.0,), (5.0,), line=False, kernel=kernel) for kernel in ("naive", "two-matrices")]
    shown = "\n".join(rows(draw(Figure((*points, Series("x", (0.0, 10.0), (0.0, 10.0), line=False, listed=False))), 80, 20)))
    assert "two-matrices △ ▲ naive" in shown


def test_a_kernel_has_its_own_sign_in_every_chart_and_when_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    signs = {kernel: sign(kernel) for kernel in registry()}
    assert len({one.glyph for one in signs.values()}) == len(signs)
    assert len(set("".join(SHAPES))) == len("".join(SHAPES))
    for kernels in (["katz-kider"], ["serial", "naive", "katz-kider"]):
        drawn = draw(Figure(tuple(Series(k, NS, RATES, line=False, kernel=k) for k in kernels)), 80, 20)
        pieces = {(text, kind) for row in drawn.rows for text, kind in row if text == "▥"}
        assert pieces == {("▥", f"series-{signs['katz-kider'].place}")}
    monkeypatch.setattr(figure_module, "rungs", lambda: {"newcomer": 40, **rungs(), "another": 99})
    assert {kernel: sign(kernel) for kernel in registry()} == signs
    assert sign("newcomer").glyph not in {one.glyph for one in signs.values()} and sign("unheard-of").glyph == "•"


def test_a_mark_is_where_its_cursor_stops() -> None:
    figure = curves()._replace(pointwise=True)
    drawing = draw(figure, 61, 17)
    shown = rows(drawing)
    for stop in drawing.stops:
        column = drawing.left + column_of(stop.share, drawing.width)
        assert shown[drawing.top + stop.row][column] in "①②"
    assert len(drawing.stops) == 10


def test_a_spike_survives_decimation_and_a_gap_stays_a_gap() -> None:
    ys: list[float | None] = [1.0] * 5000
    ys[1234], ys[3000:3100] = 99.0, [None] * 100
    thinned = decimated(range(5000), ys, 40)
    assert len(thinned) <= 5 * 40 and (1234, 99.0) in thinned and None in thinned
    assert max(p[1] for p in thinned if p is not None) == 99.0


@settings(max_examples=200)
@example([-999999999999505.0, -999999999999504.0], False, 11, 2)
@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=5), st.booleans(), st.integers(1, 12), st.sampled_from([2, 10]))
def test_ticks_are_few_rising_and_on_the_scale(values: list[float], log: bool, most: int, base: int) -> None:
    if log:
        values = [abs(value) + 1e-12 for value in values]
    found = scale(values, log, base=base)
    assert found.low < found.high and all(-1e-6 <= found.share(value) <= 1 + 1e-6 for value in values)
    told = ticks(found, most, base)
    assert len(told) <= most and list(told) == sorted(set(told))
    assert all(-1e-6 <= found.share(tick) <= 1 + 1e-6 for tick in told)


class Showing(App[None]):
    """Application with one chart that stores the chosen points."""

    def __init__(self, figure: Figure):
        super().__init__()
        self.chosen: list[tuple[int, int]] = []
        self.chart = Chart(figure, on_choice=lambda *point: self.chosen.append(point))

    def compose(self) -> ComposeResult:
        yield self.chart


async def test_keys_move_the_cursor_which_shows_the_values() -> None:
    app = Showing(curves())
    async with app.run_test(size=(80, 20)) as pilot:
        app.chart.focus()
        await pilot.pause()
        assert "values" in app.chart.description
        await pilot.press("right")
        assert app.chart.description == "n 256   ① naive 10.0 G   ② tiled 30.0 G"
        await pilot.resize_terminal(35, 20)
        await until(pilot, lambda: app.chart.size.width == 35)
        assert app.chart.description == "n 256   ① naive 10.0 G", "what has no room is left out, and not cut"
        await pilot.resize_terminal(80, 20)
        await until(pilot, lambda: app.chart.size.width == 80)
        await pilot.press("end")
        assert app.chart.description == "n 4096   ① naive 250 G   ② tiled 750 G"
        await pilot.press("left", "left", "enter")
        assert app.chart.description.startswith("n 1024 ") and app.chosen == [(0, 2)]
        before = [app.chart.render_line(y).text for y in range(20)]
        assert all(len(line) == 80 for line in before) and before[-1].startswith("n 1024")
        assert any("│" in line[10:] for line in before)
        await pilot.press("home")
        assert app.chart.description.startswith("n 256 ")


async def test_the_mouse_finds_the_nearest_value_and_clicking_chooses_it() -> None:
    app = Showing(curves()._replace(pointwise=True))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        drawing = app.chart.drawing
        stop = drawing.stops[7]
        place = (drawing.left + column_of(stop.share, drawing.width), drawing.top + stop.row)
        await pilot.hover(app.chart, offset=place)
        assert app.chart.description == "② 600 G · n 2048 · tiled"
        await pilot.click(app.chart, offset=place)
        assert app.chosen == [(1, 3)]


async def test_an_equal_figure_is_not_redrawn_and_an_old_one_is_released() -> None:
    app = Showing(curves(low=256.0))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        drawn = app.chart.drawing
        app.chart.show(curves(low=256.0)._replace(y=app.chart.figure.y))
        assert app.chart.drawing is drawn
        held = ref(app.chart.figure.y.text)  # of its own, as tuples have no weak references
        app.chart.show(curves(low=128.0))
        for y in range(19):
            app.chart.render_line(y)
        again = app.chart.drawing
        assert again is not drawn and again is app.chart.drawing
        gc.collect()
        assert held() is None
