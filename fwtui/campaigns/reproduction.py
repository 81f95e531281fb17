"""The experiments of a paper on a live session, within a time limit; the recording has a marker for each skipped one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from fwtui.campaigns.claims import BEGIN, Paper
from fwtui.campaigns.evidence import SKIPPED, Evidence, Missing, experiment, label
from fwtui.campaigns.queue import Queue, Runner
from fwtui.common.child_process import ModuleProcess
from fwtui.common.errors import Refused
from fwtui.common.temporary_folder import temporary_folder
from fwtui.experiment.experiment import FULL_CHECK, Experiment, Settled, changed, identity
from fwtui.live.protocols import RunSession, finish
from fwtui.stream.requests import SaveRequest
from fwtui_kernels import registry

QUICK_SECONDS = 50.0  # for all runs of a paper with --quick
REPETITIONS = ((0.01, 20), (0.3, 5), (1.0, 3), (inf, 2))  # (expected seconds of one repetition, number of repetitions)
MAX_WRITING_SECONDS = 120.0  # time limit for writing a graph file


class Reproduction:
    """A paper's experiments on a new session."""

    def __init__(self, live: RunSession, paper: Paper, gpu: bool, quick: bool, report: Callable[[str], None]):
        self.paper, self.evidence = paper, Evidence(live.model, paper.dtype)
        self.title = f"{BEGIN}{paper.name}{' --quick' if quick else ''}"
        self._live, self._gpu, self._quick, self._report, self._skipped = live, gpu, quick, report, set[str]()
        self._seen = set[tuple[object, ...]]()
        self._queue = Queue(live, QUICK_SECONDS if quick else paper.seconds)
        self.runner = Runner(self._queue, self._wanted(), lambda settled, why: self._skip(label(settled), why))

    def count(self) -> None:
        """Profile the kernels whose hardware counters the claims can use."""
        for spec, most in self.paper.counted.items():
            try:
                run = self.evidence.run(spec, max(n for n in (*self.evidence.sizes(spec), 0) if n <= most))
            except Missing as missing:
                self._report(f"no counters of {spec}: {missing}")
                continue
            self._report(f"counters of {spec}, n {run.n}")
            self._live.count(run.id)
            finish(self._live)
            if not self._live.model.runs[run.id].counted:  # a notice gives the reason
                return

    def _wanted(self) -> Iterator[Settled]:
        """Yield the experiments that this machine can run, each after the last one is over."""
        self._live.mark(self.title)
        self._queue.go()
        for group in self.paper.runs:
            sizes = group.sizes(self._gpu, self._quick)
            listed = (experiment(spec, n, self.paper.dtype) for n in sizes for spec in group.of)
            for requested in self._from_files(group.of[0], sizes) if group.file else listed:
                settled = self._settled(requested)
                if settled is not None:
                    self._report(f"{label(settled)}, about {self._queue.expect(settled).total:.0f} s")
                    yield settled

    def _from_files(self, spec: str, sizes: tuple[int, ...]) -> Iterator[Experiment]:
        with temporary_folder() as folder:
            for n in sizes:
                path = folder / f"graph-{n}.gr"
                request = SaveRequest(experiment("serial", n, self.paper.dtype), str(path))
                ModuleProcess("fwtui.measure.save_graph").finish(MAX_WRITING_SECONDS, request)
                if path.exists():
                    yield changed(experiment(spec, n, self.paper.dtype), file=str(path))
                else:
                    self._skip(f"{spec} n {n} from a file", "the file was not written")

    def _settled(self, requested: Experiment) -> Settled | None:
        """Settle an experiment; None if it is skipped, or was already run for another claim."""
        kernel = registry().get(requested.kernel)
        if kernel is None:
            return self._skip(requested.kernel, "kernel missing")
        if kernel.backend == "cuda" and not self._gpu and requested.device != "simulator":
            return self._skip(requested.kernel, "needs a GPU")
        full = requested.n <= FULL_CHECK[kernel.backend]
        try:
            settled = self._live.settled(changed(requested, verify=requested.verify if full else "sample"))
        except Refused as refusal:
            return self._skip(label(requested), str(refusal))
        settled = self._queue.repeated(settled, REPETITIONS)
        if (key := identity(settled)) in self._seen:
            return None
        self._seen.add(key)
        return settled

    def _skip(self, what: str, why: str) -> None:
        if what not in self._skipped:
            self._skipped.add(what)
            self._live.mark(f"{SKIPPED}{what}: {why}")
            self._report(f"{SKIPPED}{what}: {why}")
