"""Kernels in CUDA C++ on a machine without a GPU: compiled by its C++ compiler against a stand-in for CUDA (cuda_on_host.hpp).

What the stand-in lacks, such as shuffles of a warp, is no mistake of the kernel's: it then takes a GPU.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import numpy as np

from fwtui_kernels.compiled.device import SIM
from fwtui_kernels.own import NoTrial, OwnKernelError, at_function

if SIM or TYPE_CHECKING:
    from fwtui_kernels.compiled import simulator_races

COMPILERS = ("c++", "g++", "clang++")
SECONDS = 60.0  # that the compiler may take
# the compiler begins once the watch knows its process group, which it kills if this process ends without a second word
_BEGIN = 'read begin && exec "$@"'
_WATCH = 'read group && read done || { kill -s KILL -- "-$group"; rm -rf "$0"; }'
_STAND_IN = Path(__file__).with_suffix(".hpp")  # for a kernel; what runs its threads is in the .cpp, for all kernels
_OPTIONS = ("-std=c++17", "-O1", "-w", "-fPIC")
_DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w:<> ]+?)\s*(\w+)\s*\[\s*\]\s*;")
# has the compiler call what the stand-in has in place of its own check of threads, at each access to memory
_SEEN = ("-fsanitize=thread", "-g1", "-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s", "-lgcc")
_MOST_RACES = 100  # as there
FENCE = 4096  # cells before and after a buffer
_MOST = 64  # parameters of a function


class HostCode:
    """The functions of a file, loaded into this process from a library, of which the bytes are kept: they know the lines."""

    def __init__(self, path: Path, functions: Sequence[str]):
        self._library, self._numbers = ctypes.CDLL(str(path)), {name: number for number, name in enumerate(functions)}
        self._library.fwtui_divergence.restype = ctypes.c_char_p
        self._bytes = path.read_bytes()

    def parameters(self, function: str) -> tuple[int, ...]:
        """The bytes of each parameter of a function."""
        sizes = (ctypes.c_int * _MOST)()
        count = getattr(self._library, f"fwtui_sizes_{self._numbers[function]}")(sizes)
        return tuple(sizes[:count])

    def launch(self, function: str, shape: Sequence[int], arguments: Sequence[Any]) -> None:
        pointers = (ctypes.c_void_p * len(arguments))(
            *[ctypes.cast(ctypes.pointer(one), ctypes.c_void_p).value for one in arguments]
        )
        getattr(self._library, f"fwtui_launch_{self._numbers[function]}")((ctypes.c_uint * 6)(*shape), pointers)

    def watch(self, buffers: Sequence[np.ndarray]) -> None:
        """Look at what threads do to memory in the next launch, whose global memory is in these arrays."""
        ends = [end for one in buffers for end in (one.ctypes.data, one.ctypes.data + one.nbytes)]
        self._library.fwtui_watch((ctypes.c_size_t * len(ends))(*ends), len(buffers))

    def races(self, file: str, function: str, shape: Sequence[int]) -> Iterator[simulator_races.Race]:
        """Those of that launch."""
        numbers = (ctypes.c_int64 * (9 * _MOST_RACES))()
        rows = [numbers[9 * at : 9 * at + 9] for at in range(self._library.fwtui_races(numbers))]
        lines = self._lines([place for row in rows for place in (row[3], row[6])])
        blocks = {
            number: simulator_races.SimulatedBlock(_index(number, shape[:3])) for row in rows for number in (row[4], row[7])
        }
        for shared, reads, harms, at, block, thread, written_at, written_block, writing_thread in rows:
            one = simulator_races.Turn(blocks[block], 0, _index(thread, shape[3:]))
            writer = simulator_races.Turn(blocks[written_block], 0, _index(writing_thread, shape[3:]))
            here, there = (simulator_races.KernelLine(file, lines.get(place, 0), function) for place in (at, written_at))
            yield simulator_races.Race("shared" if shared else "global", bool(reads), here, one, there, writer, bool(harms))

    def _lines(self, places: Sequence[int]) -> dict[int, int]:
        """The line of the source of each place in the library, where there is a tool that tells."""
        if not places or (tool := which("addr2line")) is None:
            return {}
        with tempfile.NamedTemporaryFile(suffix=".so") as library:
            library.write(self._bytes)
            library.flush()
            command = [tool, "-e", library.name, *map(hex, places)]
            output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        lines = (re.search(r":(\d+)", line) for line in output)
        return {place: int(line[1]) for place, line in zip(places, lines, strict=False) if line}

    @property
    def divergence(self) -> str:
        """What was wrong first with the barriers to which a block's threads came, in words; empty if nothing was."""
        return self._library.fwtui_divergence().decode()


class HostKernel:
    """A function as CudaProgram knows those of Numba: `function[grid, block, stream](*buffers, *integers)`."""

    def __init__(self, source: Path, code: HostCode, function: str, name: str, n: int, check: Callable[..., None]):
        self._source, self._code, self._function, self._name, self._n, self._check = source, code, function, name, n, check

    def __getitem__(self, configuration: tuple[tuple[int, ...], tuple[int, ...], Any]) -> Callable[..., None]:
        grid, block, _ = configuration

        def launch(*arguments: Any) -> None:
            arrays = [one for one in arguments if hasattr(one, "shape") and one.shape]
            integers = arguments[len(arrays) :]
            self._check(self._code.parameters(self._function), len(arrays), len(integers))
            fenced = [_fenced(np.asarray(one)) for one in arrays]
            values = [ctypes.c_void_p(one[FENCE:].ctypes.data) for one in fenced]
            numbers = [ctypes.c_int(int(one)) for one in (self._n, *integers)]
            shape, log = (*_three(grid), *_three(block)), simulator_races.log if SIM else None
            if log is not None:
                self._code.watch(fenced)
            self._code.launch(self._function, shape, [*values, *numbers])
            for one, guarded in zip(arrays, fenced, strict=True):
                if (guarded[:FENCE] != _beyond(guarded)).any() or (guarded[-FENCE:] != _beyond(guarded)).any():
                    raise at_function(self._source, self._name, f"{self._function} writes outside its buffers")
                np.asarray(one)[...] = guarded[FENCE:-FENCE].reshape(one.shape)
            if log is not None:
                log.divergence = log.divergence or (self._code.divergence and f"{self._source.name}: {self._code.divergence}")
                log.add(self._code.races(self._source.name, self._name, shape))

        return launch


def compiled(source: Path, functions: Sequence[str], define: Mapping[str, str], include: Sequence[Path]) -> HostCode:
    """The functions of a .cu file for this machine. Raises NoTrial if it cannot compile them, OwnKernelError without the file."""
    try:
        text = source.read_text("utf-8", "replace")
    except OSError as error:
        raise OwnKernelError(f"{source.name} cannot be read: {(error.strerror or str(error)).lower()}") from None
    names = tuple(dict.fromkeys(functions))
    return _compiled(text, str(source), names, tuple(define.items()), tuple(map(str, (source.parent, *include))))


@cache
def _compiled(
    text: str, source: str, names: tuple[str, ...], define: tuple[tuple[str, str], ...], include: tuple[str, ...]
) -> HostCode:
    compiler = next(filter(None, map(which, COMPILERS)), None)
    if compiler is None:
        raise NoTrial(f"{Path(source).name} takes a GPU, or a C++ compiler to be tried without one; none of {COMPILERS} is here")
    # shared memory whose size comes with the launch: all arrays without a size are the same bytes
    text = _DYNAMIC.sub(lambda match: f"{match[1]} *{match[2]} = reinterpret_cast<{match[1]} *>(fwtui::dynamic_shared);", text)
    ends = [
        f'extern "C" void fwtui_launch_{at}(const unsigned *shape, void **given) {{ fwtui::launch({name}, shape, given); }}\n'
        f'extern "C" int fwtui_sizes_{at}(int *found) {{ return fwtui::sizes({name}, found); }}\n'
        for at, name in enumerate(names)
    ]
    try:
        threads_code = _threads(compiler)  # before the folder below, which its watch does not know
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoTrial(f"{Path(source).name} takes a GPU: {Path(compiler).name} does not compile it here: {error}") from None
    with tempfile.TemporaryDirectory(prefix="fwtui-", ignore_cleanup_errors=True) as folder:
        file, threads, library = (Path(folder) / name for name in ("kernel.cpp", "threads.o", "kernel.so"))
        threads.write_bytes(threads_code)
        file.write_text(f'#include "{_STAND_IN}"\n#line 1 "{Path(source).name}"\n{text}\n{"".join(ends)}')
        options = [f"-D{name}={value}" for name, value in define] + [f"-I{folder}" for folder in include]
        reason = ""
        for looking in (_SEEN, ()):
            try:
                command = [compiler, *_OPTIONS, "-shared", *options, str(file), str(threads), "-o", str(library), *looking]
                code, messages = _watched(command, folder)
                if not code:
                    return HostCode(library, names)
            except (OSError, subprocess.TimeoutExpired) as error:
                reason = f"{Path(compiler).name} does not compile it here: {error}"
                continue
            wrong = next((line for line in messages.splitlines() if "error" in line), "it does not say why")
            reason = f"the stand-in for CUDA here does not compile it: {wrong.strip()}"
            if f"{Path(source).name}:" in wrong:
                break
        raise NoTrial(f"{Path(source).name} takes a GPU: {reason}")


@cache
def _threads(compiler: str) -> bytes:
    """What runs the threads of all kernels, as an object file. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="fwtui-", ignore_cleanup_errors=True) as folder:
        compiled = Path(folder) / "threads.o"
        code, messages = _watched([compiler, *_OPTIONS, "-c", str(_STAND_IN.with_suffix(".cpp")), "-o", str(compiled)], folder)
        if code:
            raise OSError(next((line for line in messages.splitlines() if "error" in line), f"exit code {code}").strip())
        return compiled.read_bytes()


def _watched(command: Sequence[str], folder: str) -> tuple[int, str]:
    """Exit code and stderr of a compiler whose processes, and the folder of its files, never outlive this process.

    Raises OSError, and subprocess.TimeoutExpired after SECONDS.
    """
    # a watch without the variables by which all that comes from this process is found and killed
    watch = subprocess.Popen(
        ["sh", "-c", _WATCH, folder],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": os.defpath},
        stderr=subprocess.DEVNULL,
    )
    process = subprocess.Popen(
        ["sh", "-c", _BEGIN, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "TMPDIR": folder},
    )
    assert watch.stdin is not None
    watch.stdin.write(f"{process.pid}\n".encode())
    watch.stdin.flush()
    try:
        messages = process.communicate("begin\n", SECONDS)[1]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    finally:
        watch.communicate(b"done\n")
    return process.returncode, messages


def _fenced(array: np.ndarray) -> np.ndarray:
    """Its cells one after the other, between others that a kernel must not change and that spoil what is made of them."""
    guarded = np.empty(array.size + 2 * FENCE, array.dtype)
    guarded[:FENCE] = guarded[-FENCE:] = _beyond(guarded)
    guarded[FENCE:-FENCE] = array.reshape(-1)
    return guarded


def _beyond(array: np.ndarray) -> Any:
    return array.dtype.type(-9999)


def _three(sides: tuple[int, ...]) -> tuple[int, ...]:
    return (*sides, 1, 1)[:3]


def _index(number: int, sides: Sequence[int]) -> tuple[int, int, int]:
    return number % sides[0], number // sides[0] % sides[1], number // (sides[0] * sides[1])
