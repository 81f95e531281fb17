"""A replay equals its live session: for every recording, at its end and at any moment."""

import random
from pathlib import Path

import pytest
from builders import apply_all
from recorded_sessions import GOLDEN

from fwtui.live.session import Live
from fwtui.sessions.folders import SUFFIX, files_in, shipped_folder
from fwtui.sessions.player import Player
from fwtui.sessions.reader import LoadedSession, load
from fwtui.stream import events
from fwtui.stream.model import Model

SESSIONS = [*files_in(shipped_folder()), GOLDEN]
PLACES = 25


def told_live(recorded: LoadedSession, folder: Path, moments: set[int]) -> tuple[dict[int, Model], Path]:
    """Feed a recorded session to a live one, record it, and return its models at these events and the file."""
    live = Live(telemetry_hz=0)
    path = folder / f"again{SUFFIX}"
    live.record(path=path, title=recorded.header.title)
    assert live.model.header is not None
    states = {}
    for line in recorded.lines:
        if not isinstance(line.event, (events.Header, events.End)):
            live.publish(line)
        if live.model.index in moments:
            states[live.model.index] = live.model.frozen()
    live.close()
    return states, path


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
def test_a_replay_equals_the_live_session_at_every_moment(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwtui.live.session.anonymous", lambda line: line)  # names of this machine may be words of a recording
    recorded = load(path)
    assert recorded.complete
    dice = random.Random(path.name)
    last = len(recorded.lines) - 1  # without the end, which a live session does not see
    moments = [dice.randint(1, last) for _ in range(PLACES)]
    states, again = told_live(recorded, tmp_path, {*moments, last})
    replayed = load(again)
    assert replayed.complete and [line.raw for line in replayed.lines[1:-1]] == [line.raw for line in recorded.lines[1:-1]]
    header = replayed.header
    player, model = Player(replayed.lines), Model(seeking=True)
    for index in [last, *moments, last]:
        player.seek(player.due(index - 1))
        assert player.index >= index  # others may be due at the same moment
        model.seek(index)
        apply_all(model, (line.event for line in replayed.lines[model.index : index]))
        live = states[index]
        assert live.header is not None
        assert live.header.machine == header.machine and live.header.created == header.created
        live.header = header
        assert live == model
