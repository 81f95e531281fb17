"""Removal of names that identify the owner of a machine from sessions."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import socket
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from fwtui.stream import codec, events
from fwtui.stream.codec import Line, Unknown

_SENTENCES: dict[type[events.Event], tuple[str, ...]] = {  # fields that may quote an error or a path
    events.Fault: ("message", "stderr"),
    events.Notice: ("text",),
    events.RunDone: ("message",),
    events.Device: ("note",),
    events.Graph: ("note",),
}
_SHORTEST = 3  # characters of a name that is replaced
_ELSEWHERE = "…/"  # replaces the folders of a path
# folders from the root or ~ up to a file's own name; in quotes they may have spaces, and a URL is not a path
_QUOTED_FOLDERS = re.compile(r"""(?<=["'`])~?/(?:[^"'`\n/]+/)+""")
_FOLDERS = re.compile(r"""(?<![\w./~…-])~?/(?:[^\s"'`:,;|<>()/]+/)+""")


class Owner(NamedTuple):
    """The strings that identify the owner of a machine."""

    home: str
    hosts: tuple[str, ...]
    user: str

    @classmethod
    @cache
    def here(cls) -> Owner:
        """Return the strings of this machine; empty if unknown."""
        home = user = ""
        with contextlib.suppress(RuntimeError):
            home = str(Path.home())
        with contextlib.suppress(OSError, KeyError, ImportError):  # the user is not in the password file, as in some containers
            user = getpass.getuser()
        return cls(home, (socket.gethostname(), os.uname().nodename), user)


def anonymous(line: Line, owner: Owner | None = None) -> Line:
    """Return the line without the names of the host, the user and the user's folder in its sentences."""
    if isinstance(line.event, Unknown):
        return line
    texts = {name: getattr(line.event, name) for name in _SENTENCES.get(type(line.event), ())}
    changes = {name: safe for name, text in texts.items() if (safe := without_names(text, owner)) != text}
    return codec.as_line(msgspec.structs.replace(line.event, **changes)) if changes else line


def without_names(text: str, owner: Owner | None = None) -> str:
    """Return the text with ~ for the user's folder, (host) for the host's name, (user) for the user's, and … for other folders.

    `owner` is by default that of this machine.
    """
    for pattern, instead in _names(owner or Owner.here()):
        text = pattern.sub(instead, text)
    return _FOLDERS.sub(_ELSEWHERE, _QUOTED_FOLDERS.sub(_ELSEWHERE, text))


@cache
def _names(owner: Owner) -> tuple[tuple[re.Pattern[str], str], ...]:
    hosts = [name for host in owner.hosts for name in (host, host.partition(".")[0])]
    replacements = {owner.home: "~", **dict.fromkeys(hosts, "(host)"), owner.user: "(user)"}
    replacements.pop("root", None)  # every machine has this user, and options and messages contain the word
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(word)}(?!\w)"), instead)
        for word, instead in replacements.items()
        if len(word) >= _SHORTEST
    )
