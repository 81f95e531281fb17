"""A profiler that says what it is told to."""

import json
from pathlib import Path
from typing import Any

from own_files import write_program

FAKE = """import json, pathlib, sys
arguments = sys.argv[1:]
told = pathlib.Path({folder!r})
calls = len(list(told.glob("call-*")))
(told / f"call-{{calls}}").write_text(json.dumps(arguments))
answer = json.loads((told / "answers").read_text())[calls]
pathlib.Path(arguments[arguments.index("--log-file") + 1]).write_text(answer["log"])
sys.stdout.write(answer.get("stdout", ""))
sys.stderr.write(answer.get("stderr", ""))
if answer.get("sleep"):
    import time
    time.sleep(60)
sys.exit(answer.get("code", 0))
"""


class Fake:
    """A tool that says what it is told to, and remembers how it was called."""

    def __init__(self, folder: Path, name: str = "ncu") -> None:
        self.folder = folder
        self.path = folder / name
        write_program(self.path, FAKE.format(folder=str(folder)))

    def answers(self, *answers: dict[str, Any]) -> None:
        (self.folder / "answers").write_text(json.dumps(answers))

    def call(self, index: int = 0) -> list[str]:
        return json.loads((self.folder / f"call-{index}").read_text())
