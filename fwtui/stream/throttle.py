"""NVML's clocks-event reasons in words (nvml.h, `nvmlClocksEventReason*`); needs no NVML."""

from __future__ import annotations

REASONS: dict[int, str] = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability",
}
# idle, application clocks and display clocks are choices, not limits that the card ran into
HARMLESS = 0x1 | 0x2 | 0x100


def throttled(mask: int | None) -> tuple[str, ...]:
    """What lowered the clocks, in words; empty if nothing did or nothing is known."""
    if not mask:
        return ()
    words = [word for bit, word in REASONS.items() if mask & bit]
    unknown = mask & ~(HARMLESS | sum(REASONS))
    return tuple(words) + ((f"reason {unknown:#x}",) if unknown else ())
