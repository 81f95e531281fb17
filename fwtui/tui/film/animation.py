"""A film as one picture that moves by its own style sheet: it plays wherever a picture may, without a script.

Every line of the screen is a strip of all the rows that it ever shows, one beside the other, and jumps from one to the next.
"""

from __future__ import annotations

from collections import Counter

from fwtui.tui.film.drawing import HEIGHT, WIDTH, drawn, escaped, style_sheet
from fwtui.tui.film.film import Film

HOLD = 4.0  # seconds that the last screen stays before it begins again
MARGIN = 14


def animation(film: Film) -> str:
    width, height = film.width * WIDTH, film.height * HEIGHT
    whole = film.duration + HOLD
    shown = Counter(row for y in range(film.height) for row in {frame.lines[y] for frame in film.frames})
    shared = {row: drawn(film.rows[row], film) for row, times in shown.items() if times > 1}
    rules, lines = [], []
    for y in range(film.height):
        steps = [(frame.played / whole, frame.lines[y]) for frame in film.frames]
        changes = [step for place, step in enumerate(steps) if not place or step[1] != steps[place - 1][1]]
        strip = [*dict.fromkeys(row for _, row in changes)]
        if len(strip) > 1:
            places = [(f"{100 * at:.4g}%", _at(width * strip.index(row))) for at, row in changes]
            keys = "".join(f"{when}{{{where}}}" for when, where in (*places, ("100%", places[-1][1])))
            rules.append(f"@keyframes k{y}{{{keys}}}#l{y}{{{places[-1][1]};animation-name:k{y}}}")
        body = "".join(_row(film, shared, row, width * place) for place, row in enumerate(strip))
        lines.append(f'<g transform="translate(0 {HEIGHT * y})"><g id="l{y}">{body}</g></g>')
    style = (
        style_sheet(film)
        + f"g[id^=l]{{animation:{whole:.3f}s step-end infinite}}"
        + "".join(rules)
        # without motion the last screen is seen
        + "@media (prefers-reduced-motion:reduce){g[id^=l]{animation:none}}"
    )
    corner, size = f'x="{-MARGIN}" y="{-MARGIN}"', f'width="{width + 2 * MARGIN}" height="{height + 2 * MARGIN}"'
    box = f"{-MARGIN} {-MARGIN} {width + 2 * MARGIN} {height + 2 * MARGIN}"
    title = escaped(f"{film.title}: a replay")
    ground = f'<rect {corner} {size} rx="10" fill="{film.ground}"/>'
    defined = "".join(f'<g id="r{row}">{body}</g>' for row, body in shared.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-labelledby="title" xml:space="preserve">'
        f'<title id="title">{title}</title><style>{style}</style>{ground}'
        f'<defs>{defined}</defs><svg width="{width}" height="{height}">{"".join(lines)}</svg></svg>\n'
    )


def holds(picture: str, film: Film) -> bool:
    """Whether the picture has every row of that film's last screen, drawn as they are drawn today."""
    return all(drawn(film.rows[line], film) in picture for line in film.frames[-1].lines)


def _at(x: int) -> str:
    return f"transform:translate({-x}px)"


def _row(film: Film, shared: dict[int, str], row: int, x: int) -> str:
    if row in shared:
        return f'<use href="#r{row}" x="{x}"/>'
    body = drawn(film.rows[row], film)
    return f'<g transform="translate({x})">{body}</g>' if x and body else body
