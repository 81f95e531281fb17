"""A film as one SVG picture, animated by its style sheet: it plays wherever a picture is shown, without a script.

Each line of the screen is a strip of all its rows, side by side, and jumps from row to row. Parts that all rows share do not
move, and repeated parts are defined once.
"""

from __future__ import annotations

from collections import Counter

from fwtui.analysis.html import escaped
from fwtui.tui.export.drawing import HEIGHT, WIDTH, grounds, parts, signs, style_sheet
from fwtui.tui.export.film import Film

HOLD = 4.0  # seconds of the last screen before the film starts again
MARGIN = 14


def animation(film: Film) -> str:
    width, height = film.width * WIDTH, film.height * HEIGHT
    whole = film.duration + HOLD
    strips = [_Strip(film, y) for y in range(film.height)]
    occurrences = Counter(part for strip in strips for row in strip.rows for part in row)
    again = [part for part, times in occurrences.items() if times > 1]
    used = {part: f'<use href="#p{number}"/>' for number, part in enumerate(again)}
    rules, lines = [], []
    for y, strip in enumerate(strips):
        rows_used = ("".join(used.get(part, part) for part in row) for row in strip.rows)
        placed = ((width * place, row) for place, row in enumerate(rows_used))
        moving = "".join(f'<g transform="translate({x})">{row}</g>' if x and row else row for x, row in placed)
        if len(strip.rows) > 1:
            places = [(f"{100 * at / whole:.4g}%", f"transform:translate({-width * place}px)") for at, place in strip.changes]
            keys = "".join(f"{when}{{{where}}}" for when, where in (*places, ("100%", places[-1][1])))
            rules.append(f"@keyframes k{y}{{{keys}}}#l{y}{{{places[-1][1]};animation-name:k{y}}}")
            moving = f'<g id="l{y}">{moving}</g>'
        lines.append(f'<g transform="translate(0 {HEIGHT * y})">{strip.below}{moving}{strip.above}</g>')
    style = (
        style_sheet(film)
        + f"g[id^=l]{{animation:{whole:.3f}s step-end infinite}}"
        + "".join(rules)
        # a viewer who prefers reduced motion sees only the last screen
        + "@media (prefers-reduced-motion:reduce){g[id^=l]{animation:none}}"
    )
    corner, size = f'x="{-MARGIN}" y="{-MARGIN}"', f'width="{width + 2 * MARGIN}" height="{height + 2 * MARGIN}"'
    box = f"{-MARGIN} {-MARGIN} {width + 2 * MARGIN} {height + 2 * MARGIN}"
    title = escaped(f"{film.title}: a replay")
    ground = f'<rect {corner} {size} rx="10" fill="{film.ground}"/>'
    defined = "".join(f'<g id="p{number}">{part}</g>' for number, part in enumerate(again))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-labelledby="title" xml:space="preserve">'
        f'<title id="title">{title}</title><style>{style}</style>{ground}'
        f'<defs>{defined}</defs><svg width="{width}" height="{height}">{"".join(lines)}</svg></svg>\n'
    )


class _Strip:
    """A line of the screen: the parts of each row, the parts of all rows below and above them, and the times of changes."""

    def __init__(self, film: Film, y: int):
        steps = [(frame.played, frame.lines[y]) for frame in film.frames]
        changes = [step for place, step in enumerate(steps) if not place or step[1] != steps[place - 1][1]]
        rows = [*dict.fromkeys(row for _, row in changes)]
        self.changes = [(at, rows.index(row)) for at, row in changes]
        row_parts = [[*parts(film.rows[row], film)] for row in rows]
        always = set(row_parts[0]).intersection(*row_parts[1:])
        # in a row only backgrounds are covered by other parts, so that only they must be drawn first
        self.below = "".join(part for part in grounds(film.rows[rows[0]], film) if part in always)
        self.above = "".join(part for part in signs(film.rows[rows[0]], film) if part in always)
        self.rows = [[part for part in row if part not in always] for row in row_parts]
