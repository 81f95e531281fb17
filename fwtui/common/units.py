"""Numbers with units and three significant digits, in a stable width. None is shown as `n/a`."""

from __future__ import annotations

ABSENT = "n/a"
LARGEST = 1e15  # the largest magnitude in an event or an experiment
_PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def digits(value: float) -> str:
    """Format three significant digits without an exponent: 1.79, 38.4, 196, 2840."""
    size = abs(value)
    if size >= 99.95 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def scaled(value: float | None, unit: str) -> str:
    """Format a large amount with its decimal prefix: 4.81 TB/s."""
    if value is None:
        return ABSENT
    for prefix, factor in _PREFIXES:
        if abs(value) >= factor * 0.9995:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value)} {unit}"


SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def duration(seconds: float | None) -> str:
    """Format a measured time: 38.4 ms, 1.20 s, 2 min 05 s."""
    if seconds is None:
        return ABSENT
    if seconds == 0:
        return "0 s"
    if seconds >= 119.5:
        return f"{int(seconds + 0.5) // 60} min {int(seconds + 0.5) % 60:02d} s"
    for unit, factor in SECONDS.items():
        if seconds >= factor * 0.9995:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds / 1e-6)} us"


def clock(seconds: float) -> str:
    """Format a position in a session: 00:42, 1:02:03."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"


def percent(share: float | None) -> str:
    """Format a share of 1 as a percentage: 2.3 %, 92.7 %, 100 %."""
    if share is None:
        return ABSENT
    value = 100 * share
    return f"{value:.0f} %" if value >= 99.95 else f"{value:.1f} %"


def bandwidth(bytes_per_second: float | None) -> str:
    return scaled(bytes_per_second, "B/s")


def rate(relaxations_per_second: float | None) -> str:
    return scaled(relaxations_per_second, "relax/s")


def memory(count: float | None) -> str:
    """Format bytes in binary units, as memory is sold: 141 GiB."""
    if count is None:
        return ABSENT
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{digits(count / factor)} {unit}"
    return f"{count:.0f} B"


def counted(number: int, noun: str, more: str = "") -> str:
    """Format a count with its noun: 1 event, 1,204 events; `more` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else more or f'{noun}s'}"


def vertices(n: int) -> str:
    """Format the size of a graph: 1 vertex, 1,024 vertices."""
    return counted(n, "vertex", "vertices")


def gain(ratio: float) -> str:
    """Format a speedup or another ratio: 5.10x, 0.25x, 1/204, 11,023x."""
    if 0 < ratio < 0.0995:
        return f"1/{1 / ratio:,.0f}"
    return f"{ratio:,.0f}x" if ratio >= 999.5 else f"{digits(ratio)}x"


def spread(share: float | None) -> str:
    """Format a relative half-interval: ± 0.3 %, ± < 0.1 %."""
    return "" if share is None else f"± {100 * share:.1f} %" if share >= 0.0005 else "± < 0.1 %"
