"""A worker that replaces fwtui.measure.worker and misbehaves as the environment variable FAKE_WORKER says."""

import faulthandler
import os
import signal
import sys
import time

from fwtui.common.child_protocol import Parent
from fwtui.experiment.experiment import changed
from fwtui.stream import codec, events, requests

MEGABYTE = b"x" * 2**20


def main() -> None:
    origin, parent = float(sys.argv[1]), Parent()
    request = requests.decode(parent.requests.readline())
    assert isinstance(request, requests.RunRequest)
    run, asked = request.run, changed(request.experiment, file="")

    def tell(*what: events.Event) -> None:
        for event in what:
            parent.write(codec.encode(event))

    begun = events.RunStarted(t=time.monotonic() - origin, run=run, experiment=asked, title="Fake", backend="cpu", phases=())
    done = events.RunDone(t=time.monotonic() - origin, run=run, outcome="done")
    tell(begun, events.Stage(t=begun.t, run=run, name="warm-up"))
    match os.environ["FAKE_WORKER"]:
        case "exit 1":
            sys.exit("the last words of \x1b[31m somebody")
        case "segfault":
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGSEGV)
        case "fault, then exit":
            tell(events.Fault(t=done.t, source="worker", code="cuda", run=run, message="the GPU reported an error"))
            os._exit(1)
        case "fault and end, then exit":
            failed = events.RunDone(t=done.t, run=run, outcome="failed", message="the GPU reported an error")
            tell(events.Fault(t=done.t, source="worker", code="cuda", run=run, message=failed.message), failed)
            time.sleep(0.3)
            os._exit(0)
        case "garbage":
            parent.write(b"\xff\x00garbage\n" + codec.encode(done)[:-9] + b'"}\n{"kind":"nothing of ours","t":1}\n\n')
            tell(done)
            parent.write(b'{"kind":"telemetry","t":')
            os._exit(0)
        case "half a line":
            parent.write(codec.encode(done)[:-1])
            os._exit(0)
        case "200 KB without a line break":
            parent.write(b"y" * 200_000 + b"\n")
            tell(done)
        case "flood":
            for number in range(20_000):
                tell(events.Progress(t=begun.t, run=run, stage="warm-up", done=number / 20_000))
            tell(done)
        case "talkative":
            for _ in range(10):
                os.write(1, MEGABYTE)
                os.write(2, MEGABYTE)
            os.write(2, b"\nthe very last words\n")
            tell(done)
            parent.requests.readline()
            os._exit(3)
        case "crash in many threads":
            frames = b'  File "fwtui/measure/worker.py", line 71 in _listen\n' * 100
            os.write(2, b"Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n" + frames)
            os.write(2, b'Current thread 0x2 (most recent call first):\n  File "fwtui/measure/runner.py", line 1 in measure\n')
            os.write(2, b"\nExtension modules: " + b"numpy._core, " * 400 + b"(total: 400)\n")
            os.kill(os.getpid(), 9)
        case "deaf":
            time.sleep(600)
    parent.requests.readline()


if __name__ == "__main__":
    main()
