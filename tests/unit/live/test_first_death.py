"""The process that ended first is found from the pipes that all of them held open."""

import os
import select

import pytest

from fwtui.live.rank_job import FirstEnd

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only on Linux")


def test_the_first_to_close_is_found_whatever_closes_later() -> None:
    first_end = FirstEnd(3)
    opened = [os.open(path, os.O_WRONLY) for path in first_end.paths]
    assert first_end.found() is None
    first_end.watch()
    assert first_end.found() is None
    for process in (2, 0, 1):
        os.close(opened[process])
    assert first_end.found() == 2
    first_end.close()
    assert first_end.found() is None


def test_none_is_found_without_epoll_and_where_one_had_ended_before_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    first_end = FirstEnd(2)
    opened = os.open(first_end.paths[0], os.O_WRONLY)
    first_end.watch()
    os.close(opened)
    assert first_end.found() is None
    first_end.close()
    monkeypatch.delattr(select, "epoll")
    first_end = FirstEnd(2)
    first_end.watch()
    assert (first_end.paths, first_end.found()) == ([], None)
    first_end.close()


def test_no_descriptor_is_left() -> None:
    before = os.listdir("/proc/self/fd")
    for watched in (False, True):
        first_end = FirstEnd(3)
        if watched:
            first_end.watch()
        first_end.close()
        assert os.listdir("/proc/self/fd") == before
    room = [os.pipe() for _ in range(2)]

    def until_there_is_no_room() -> tuple[int, int]:
        if not room:
            raise OSError(24, "Too many open files")
        return room.pop()

    with pytest.raises(OSError, match="Too many"):
        FirstEnd(3, until_there_is_no_room)
    assert os.listdir("/proc/self/fd") == before
