"""Terminal sizes down to 1 x 1."""

from apps import replay_at_end
from pressing import keyed, opened, press, proceed, settled

from fwtui.sessions.library import resolve
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.places import MIN

SIZES = [(59, 40), (120, 15), (1, 1), (200, 1), (120, 40)]


async def test_the_dashboard_survives_every_size_and_recovers(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        await proceed(pilot, "r")
        for size in SIZES:
            await pilot.resize_terminal(*size)
            shown = await keyed(pilot)
            if size[0] < MIN[0] or size[1] < MIN[1]:
                assert "RUN 1" not in shown
                if size[0] >= 25 and size[1] >= 2:
                    assert f"needs {MIN[0]} x {MIN[1]}" in shown and f"has {size[0]} x {size[1]}" in shown
            else:
                assert "RUN 1" in shown and "✓ verified" in shown and "20.0 ms" in shown, size
        await pilot.resize_terminal(60, 16)
        for key in ("e", "l"):
            await pilot.press(key)
            for size in ((1, 1), (60, 16)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
            await press(pilot, "escape")
        assert dashboard.return_code in (0, None)


async def test_the_smallest_terminal_shows_the_hotspot_and_complete_reasons() -> None:
    app = replay_at_end(resolve("h200-n4096-naive-blocked"), "explain")
    async with opened(app, size=(60, 16)) as pilot:
        assert "50 % ██████████ S   13      own[r, x]" in await settled(pilot)
        app.action_place("compare")
        words = " ".join((await settled(pilot)).split())
        assert "instruction issue and shared memory in the remainder phase (93 % of the time): both 95" in words
        words = " ".join((await settled(pilot, "pagedown")).split())
        assert "% busy, most at k45_katz_kider.py:13" in words and "try next Optimized & blocked: 31.5 ms -> 11.1 ms" in words
