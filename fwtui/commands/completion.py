"""Print a script that completes commands, options, kernels and sessions in bash, zsh, fish or tcsh.

The shell looks the names of sessions up itself: starting the program for every tab would be slow.
"""

from __future__ import annotations

import argparse
import shlex

from fwtui.commands import add_command, helps
from fwtui.common.exit_codes import OK
from fwtui.experiment.fields import FIELDS, Choices
from fwtui.sessions.folders import SUFFIX, own_folder, shipped_folder
from kernels import registry
from kernels.auto import AUTO

ORDER = 225
SHELLS = ("bash", "zsh", "fish", "tcsh")
OF_SESSIONS = ("session", "sessions", "entrants", "resume")  # arguments by their names
OF_FILES = ("file", "graph", "out", "pairs", "record", "field_file")
KERNELS = ("kernel", "baseline")
# names of other characters are left out: a shell might carry out what they say
NAMES = {
    "bash": """_fwtui_sessions() {{
  local file name
  for file in {folders}; do
    name=${{file##*/}}; name=${{name%{suffix}}}
    case $name in (''|*[!A-Za-z0-9._-]*) ;; ("$1"*) printf '%s\\n' "$name" ;; esac
  done
  _shtab_compgen_files "$1"
}}""",
    "zsh": """_fwtui_sessions() {{
  setopt local_options null_glob
  local file name
  local -a names
  for file in {folders}; do
    name=${{file##*/}}; name=${{name%{suffix}}}
    case $name in (''|*[!A-Za-z0-9._-]*) ;; (*) names+=("$name") ;; esac
  done
  compadd -a names
  _files
}}""",
    "fish": """function _fwtui_sessions
  for file in {folders}
    string match -r '^[A-Za-z0-9._-]+$' -- (string replace -r '^.*/(.*){suffix}$' '$1' -- $file)
  end
  __fish_complete_path (commandline -ct)
end""",
}
CALLED = {"bash": "_fwtui_sessions", "zsh": "_fwtui_sessions", "fish": "(_fwtui_sessions)", "tcsh": "f"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    start = 'bash and zsh: put  eval "$(fwtui completion bash)"  (or zsh) into ~/.bashrc or ~/.zshrc, there after compinit; '
    fish = "fish: fwtui completion fish > ~/.config/fish/completions/fwtui.fish; tcsh completes files in place of sessions"
    parser.add_argument("shell", choices=SHELLS, help=f"which shell. {start}{fish}")


def execute(given: argparse.Namespace) -> int:
    from shtab import complete

    print(complete(whole(), given.shell, root_prefix="_fwtui"))
    return OK


def whole() -> argparse.ArgumentParser:
    """The parser of all commands, whose arguments say how a shell completes them."""
    root = argparse.ArgumentParser(prog="fwtui")
    root.add_argument("--version", action="store_true", help="versions of everything that matters")
    parsers = root.add_subparsers()
    of_kernels = (*registry(), AUTO.id)
    words = {f"field_{f.name}": _offered(f.choices) for f in FIELDS if f.choices is not None} | dict.fromkeys(KERNELS, of_kernels)
    for name, about in helps().items():
        command = parsers.add_parser(name, help=about, description=about)
        add_command(command, name)
        for action in command._actions:
            if action.dest in OF_SESSIONS:
                action.complete = {**CALLED, "preamble": _names_of_sessions()}  # type: ignore[attr-defined]
            elif action.dest in OF_FILES and action.nargs != 0:
                action.complete = "file"  # type: ignore[attr-defined]
            elif action.dest in words:
                action.choices = words[action.dest]
    return root


def _offered(choices: Choices) -> tuple[str, ...]:
    """What any kernel offers."""
    return tuple(dict.fromkeys(word for kernel in registry().values() for word in choices(kernel, False)))


def _names_of_sessions() -> dict[str, str]:
    folders = " ".join(f"{shlex.quote(str(folder))}/*{SUFFIX}" for folder in (own_folder(), shipped_folder()))
    return {shell: text.format(folders=folders, suffix=SUFFIX) for shell, text in NAMES.items()}
