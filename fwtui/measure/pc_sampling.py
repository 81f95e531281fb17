"""PC sampling by CUPTI through ctypes: the instruction and the stall reason of a GPU's warps.

Structures and calls: NVIDIA, CUPTI documentation, "CUPTI PC Sampling API", and cupti_pcsampling.h, identical in CUDA 12 and 13.
Sampling permanently slows down the kernels of its process, so that process times nothing.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p, pointer, sizeof
from typing import Any, NamedTuple

from cuda import pathfinder

from fwtui.common.errors import Refused

ABSENT = "libcupti is not installed; install the wheel nvidia-cuda-cupti (fwtui[cu12] and [cu13] bring it), or the CUDA toolkit"
BUSY = "another program samples this GPU; try again after it has ended"
LOCK_SECONDS = 10.0  # time-out for another sampler
HARDWARE_BYTES = 32 << 20  # size of the sample buffer; a larger one takes longer to set up
MAX_PCS = 8192  # instructions read per call
MAX_READS = 64
PREFIX = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"  # suffix of samples that CUPTI also counts as latency samples: in these cycles nothing was issued
_STALL_REASONS, _PERIOD, _HARDWARE_BUFFER, _START_STOP, _DATA = 2, 1, 4, 6, 8  # CUpti_PCSamplingConfigurationAttributeType
_NAME = 128  # bytes of a reason's name


class _Stall(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("reason", c_uint32), ("samples", c_uint32)]


class _Pc(ctypes.Structure):
    _pack_ = 1
    _fields_ = [
        *(("size", c_size_t), ("crc", c_uint64), ("offset", c_uint64), ("function", c_uint32), ("pad", c_uint32)),
        *(("name", c_char_p), ("count", c_size_t), ("stalls", POINTER(_Stall)), ("correlation", c_uint32), ("end", c_uint32)),
    ]


class _Data(ctypes.Structure):
    _pack_ = 1
    _fields_ = [
        *(("size", c_size_t), ("most", c_size_t), ("total", c_uint64), ("dropped", c_uint64), ("count", c_size_t)),
        *(("remaining", c_size_t), ("range", c_uint64), ("pcs", POINTER(_Pc)), ("others", c_uint64)),
        *(("full", c_uint8), ("pad", c_uint8 * 7)),
    ]


class _Call(ctypes.Structure):
    """The first fields of the parameter structure of every CUPTI call."""

    _fields_ = [("size", c_size_t), ("private", c_void_p), ("context", c_void_p)]


class _Number(_Call):
    _fields_ = [("number", POINTER(c_size_t))]


class _Names(_Call):
    _fields_ = [("number", c_size_t), ("indices", POINTER(c_uint32)), ("names", POINTER(c_char_p))]


class _Get(_Call):
    _fields_ = [("data", c_void_p)]


class _Attribute(ctypes.Structure):
    _fields_ = [("kind", c_int), ("status", c_int), ("data", c_uint64 * 3)]


class _Configuration(_Call):
    _fields_ = [("number", c_size_t), ("attributes", POINTER(_Attribute))]


class _Crc(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("bytes", c_size_t), ("cubin", c_char_p), ("crc", c_uint64)]


class InstructionPlace(NamedTuple):
    """An instruction of a function in a cubin."""

    crc: int
    function: str
    offset: int


class PcSamples(NamedTuple):
    """Samples of each instruction by stall reason, in CUPTI's names without their prefix."""

    by_place: Mapping[InstructionPlace, Mapping[str, int]]
    dropped: int
    full: bool = False  # the hardware buffer overflowed: some samples were lost without being counted

    def of(self, functions: Collection[tuple[int, str]]) -> PcSamples:
        """Return the samples of these functions, each a cubin's CRC and a name, with their share of the dropped samples."""
        theirs = {place: by for place, by in self.by_place.items() if place[:2] in functions}
        counts = [sum(sum(by.values()) for by in places.values()) for places in (theirs, self.by_place)]
        return PcSamples(theirs, self.dropped * counts[0] // max(counts[1], 1), self.full)


class SamplingError(RuntimeError):
    """A CUPTI error, with CUPTI's message."""


class PcSampler:
    """Samples the kernels of a context, whose modules must be loaded later. Raises FileNotFoundError and SamplingError."""

    def __init__(self, context: int):
        try:
            self._library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cupti").abs_path)
        except Exception as error:  # pathfinder's own errors, and OSError
            raise FileNotFoundError(ABSENT) from error
        self._context = context
        self._call("cuptiPCSamplingEnable", _Call)
        self._names = self._reasons()
        self._left, self._unread = _Buffer(len(self._names)), _Buffer(len(self._names))

    def crc(self, cubin: bytes) -> int:
        """Return CUPTI's CRC of a cubin."""
        query = _Crc(sizeof(_Crc), len(cubin), cubin, 0)
        self._checked("cuptiGetCubinCrc", query)
        return query.crc

    def samples(self, period: int, launch: Callable[[], None]) -> PcSamples:
        """Sample every 2^period cycles until `launch` returns; it must wait for the end of its launches."""
        attributes = (_Attribute * 5)()
        reasons = (c_uint32 * len(self._names))(*self._names)
        for attribute, (kind, *data) in zip(
            attributes,
            (
                (_STALL_REASONS, len(self._names), ctypes.addressof(reasons)),
                (_PERIOD, period),
                (_HARDWARE_BUFFER, HARDWARE_BYTES),
                (_DATA, ctypes.addressof(self._left.data)),
                (_START_STOP, 1),
            ),
            strict=True,
        ):
            attribute.kind = kind
            attribute.data[: len(data)] = data
        self._call("cuptiPCSamplingSetConfigurationAttribute", _Configuration, len(attributes), attributes)
        self._call("cuptiPCSamplingStart", _Call)
        try:
            launch()
        finally:
            self._call("cuptiPCSamplingStop", _Call)
        return self._read()

    def _read(self) -> PcSamples:
        counted: dict[InstructionPlace, Counter[str]] = defaultdict(Counter)
        dropped, full = 0, False
        for _ in range(MAX_READS):
            self._call("cuptiPCSamplingGetData", _Get, ctypes.addressof(self._unread.data))
            for data in (self._unread.data, self._left.data):
                for pc in data.pcs[: data.count]:
                    if not pc.name:
                        continue
                    place = counted[InstructionPlace(pc.crc, pc.name.decode("utf-8", "replace"), pc.offset)]
                    for stall in pc.stalls[: pc.count]:
                        if stall.samples:
                            place[self._names.get(stall.reason, "")] += stall.samples
            self._left.data.count = 0
            dropped += self._unread.data.dropped
            full |= bool(self._unread.data.full)
            if not self._unread.data.remaining and not self._unread.data.count:
                break
        samples = {
            place: {name: n for name, n in by.items() if name and not name.endswith(NOT_ISSUED)} for place, by in counted.items()
        }
        return PcSamples({place: by for place, by in samples.items() if by}, dropped, full)

    def _reasons(self) -> dict[int, str]:
        """Return the stall reasons by CUPTI's numbers; all of them are counted."""
        number = c_size_t()
        self._call("cuptiPCSamplingGetNumStallReasons", _Number, pointer(number))
        count = number.value
        indices, texts = (c_uint32 * count)(), [ctypes.create_string_buffer(_NAME) for _ in range(count)]
        names = (c_char_p * count)(*(ctypes.cast(text, c_char_p) for text in texts))
        self._call("cuptiPCSamplingGetStallReasons", _Names, count, indices, names)
        decoded = (text.value.decode("ascii", "replace") for text in texts)
        return {index: name.removeprefix(PREFIX) for index, name in zip(indices, decoded, strict=True)}

    def _call(self, name: str, kind: type[_Call], *more: Any) -> None:
        self._checked(name, kind(_size(kind), None, self._context, *more))

    def _checked(self, name: str, query: ctypes.Structure) -> None:
        if code := getattr(self._library, name)(byref(query)):
            text = c_char_p()
            self._library.cuptiGetResultString(code, byref(text))
            raise SamplingError(f"{name}: {(text.value or b'').decode('ascii', 'replace') or code}")


class _Buffer:
    """A buffer for the samples that CUPTI returns in one call."""

    def __init__(self, reasons: int):
        self._stalls = (_Stall * (reasons * MAX_PCS))()
        self._pcs = (_Pc * MAX_PCS)()
        first = ctypes.addressof(self._stalls)
        for place, pc in enumerate(self._pcs):
            pc.size, pc.count = sizeof(_Pc), reasons
            pc.stalls = ctypes.cast(first + place * reasons * sizeof(_Stall), POINTER(_Stall))
        self.data = _Data(size=sizeof(_Data), most=MAX_PCS, pcs=ctypes.cast(self._pcs, POINTER(_Pc)))


def _size(kind: type[_Call]) -> int:
    """Return the size of a structure as the CUPTI header defines it: up to the last field."""
    name = kind._fields_[-1][0]
    field = getattr(kind, name)
    return field.offset + field.size


@contextmanager
def only_sampler(gpu: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold this program's sampling lock of a GPU, by UUID: concurrent samplers get no samples and no error. Raises Refused."""
    # Linux releases an abstract socket address when the process ends
    with socket.socket(socket.AF_UNIX) as lock:
        end = time.monotonic() + seconds
        while True:
            try:
                lock.bind(b"\0fwtui-samples-" + gpu.encode())
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                    raise Refused(BUSY) from None
            time.sleep(0.02)
        yield
