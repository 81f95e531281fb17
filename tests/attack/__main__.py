"""`python tests/attack SECONDS`: every attack with one seed after the other; the round in which the time is up is the last.

Ends with a table of what was attacked, and of each failure a line that repeats it and what it said; the exit code is then 1.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
WHERE = (TESTS / "attack", TESTS / "ui" / "test_monkey.py")
FELL = ("failure", "error")
SIZE = "1"  # times what `make test` does


@dataclass
class Told:
    """Result of one attack over all rounds."""

    rounds: int = 0
    failures: int = 0
    seconds: float = 0.0
    slowest: float = 0.0


def attacked(seed: int) -> list[tuple[str, float, str]]:
    """Run one round and return each attack's name, seconds and failure report ("" if it passed)."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "attack and not slow", f"--junit-xml={report}"]
        environment = {**os.environ, "ATTACK_SEED": str(seed), "ATTACK_SIZE": SIZE, "TMPDIR": folder}
        done = subprocess.run([*command, *map(str, WHERE)], env=environment, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(done.stdout + done.stderr)
        return [
            (
                case.get("name", ""),
                float(case.get("time", 0)),
                "\n".join(it.get("message") or it.tag for it in case if it.tag in FELL),
            )
            for case in ElementTree.parse(report).iter("testcase")
        ]


def main() -> int:
    seconds, repeats = float(sys.argv[1]) if sys.argv[1:] else 600.0, list[str]()
    told: dict[str, Told] = {}
    seed, end = int(time.time()), time.monotonic() + seconds
    while time.monotonic() < end:
        for name, took, failed in attacked(seed):
            attack = told.setdefault(name, Told())
            attack.rounds += 1
            attack.failures += bool(failed)
            attack.seconds += took
            attack.slowest = max(attack.slowest, took)
            if failed:
                where = " ".join(str(path.relative_to(TESTS.parent)) for path in WHERE)
                again = f"ATTACK_SEED={seed} ATTACK_SIZE={SIZE} {sys.executable} -m pytest {where} -k {name.partition('[')[0]}"
                repeats.append(f"{again}\n  {failed[:500]}")
        seed += 1
    print(f"{'attack':60} {'rounds':>7} {'failed':>7} {'seconds':>9} {'slowest':>9}")
    for name, attack in told.items():
        print(f"{name[:60]:60} {attack.rounds:7} {attack.failures:7} {attack.seconds:9.1f} {attack.slowest:9.1f}")
    print("\n".join(["", *repeats]) if repeats else "\nnothing fell")
    return 1 if repeats else 0


if __name__ == "__main__":
    sys.exit(main())
