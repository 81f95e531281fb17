"""Means of telemetry over a time window."""

from fwtui.stream import events
from fwtui.stream.model import averaged_within


def test_an_average_that_began_before_the_window_does_not_count() -> None:
    slow = [events.Telemetry(t=float(t), sm_occupancy=t / 10, gpu_clock_mhz=100.0 * t) for t in (1, 2, 3)]
    assert averaged_within(slow, "sm_occupancy", 1.5, 3.5) == [0.3], "at 1 Hz, the reading at 2 s begins at 1 s"
    assert averaged_within(slow, "gpu_clock_mhz", 1.5, 3.5) == [200.0, 300.0], "a clock is no average"
    quick = [events.Telemetry(t=t / 10, sm_occupancy=t / 100) for t in range(10)]
    assert averaged_within(quick, "sm_occupancy", 0.45, 0.85) == [0.07, 0.08]
