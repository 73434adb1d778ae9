"""The structures and functions of `largesse.h`, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_size_t,
    c_ssize_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

MAJOR = 2
"""The major version of the interface that this module understands."""

OK, BAD_ARGUMENT, NOT_SUPPORTED = 0, -1, -2
REFUSED = ctypes.c_size_t(-1).value
HOOKED = ("no", "preloaded", "patched", "functions")
PAGES = ("auto", "thp", "hugetlb", "hugetlb-1g", "64k", "4k")
KINDS = {0: "other", 1: "thp", 2: "hugetlb", 3: "small", 5: "mixed"}
NO_LIMIT = 2**64 - 1

_COUNTERS = (
    "min_bytes max_bytes large_page_bytes blocks live_bytes peak_bytes allocations frees reused retained_bytes "
    "returned_bytes populated_bytes fresh_bytes clear_skipped_bytes resized_in_place moved_by_mremap advised_mappings "
    "advised_bytes"
).split()
FAR = (
    "local_bytes resident_bytes stored_bytes mapped_bytes set_bytes faults fills prefetched prefetch_hits evictions "
    "write_backs bytes_in bytes_out wait_ns"
).split()


class Stats(ctypes.Structure):
    """Mirrors `largesse_stats_t`."""

    _fields_ = (
        [("struct_size", c_size_t)]
        + [(name, c_uint32) for name in ("enabled", "hooked", "pages", "header")]
        + [(name, c_uint64) for name in _COUNTERS]
        + [("far_" + name, c_uint64) for name in FAR]
    )


class BlockInfo(ctypes.Structure):
    """Mirrors `largesse_block_t`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("address", c_uint64),
        ("size", c_uint64),
        ("large_bytes", c_uint64),
        ("kind", c_uint32),
        ("node", c_int32),
        ("exact", c_uint32),
        ("rest_kind", c_uint32),
        ("rest_bytes", c_uint64),
    ]


class CpuInfo(ctypes.Structure):
    """Mirrors `largesse_cpu_t`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("cpu", c_uint32),
        ("core", c_uint32),
        ("package", c_uint32),
        ("node", c_int32),
        ("permitted", c_uint32),
    ]


class NodeInfo(ctypes.Structure):
    """Mirrors `largesse_node_t`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("node", c_uint32),
        ("cpus", c_uint32),
        ("bytes", c_uint64),
        ("free_bytes", c_uint64),
    ]


class Allocator(ctypes.Structure):
    """Mirrors `largesse_allocator_t`, and NumPy's `PyDataMemAllocator`."""

    _fields_ = [(name, c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class FloatComplex(ctypes.Structure):
    """A complex number of two floats, which C returns in the same registers as `float _Complex`."""

    _fields_ = [("real", c_float), ("imag", c_float)]


class DoubleComplex(ctypes.Structure):
    """A complex number of two doubles, which C returns in the same registers as `double _Complex`."""

    _fields_ = [("real", c_double), ("imag", c_double)]


_ONE = [c_size_t, c_void_p, c_ssize_t]
_TWO = [*_ONE, c_void_p, c_ssize_t]

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_uint32, []),
    "stats": (c_int, [POINTER(Stats)]),
    "not_granted": (c_size_t, [POINTER(c_uint64), c_size_t]),
    "blocks": (c_size_t, [POINTER(BlockInfo), c_size_t]),
    "inspect": (c_int, [c_void_p, c_size_t, POINTER(BlockInfo)]),
    "allocator": (c_int, [c_void_p, POINTER(Allocator)]),
    "enable": (c_int, [c_int]),
    "set_limits": (c_int, [c_uint64, c_uint64]),
    "trim": (c_size_t, [c_size_t]),
    "tune_begin": (c_int, [c_char_p]),
    "tune_end": (c_int, [c_char_p]),
    "far_memory": (c_char_p, [c_char_p, c_char_p, c_char_p]),
    "limit": (c_char_p, [c_char_p, c_char_p]),
    "set_threads": (c_int, [c_int]),
    "threads": (c_int, []),
    "pin": (c_int, [c_char_p, c_int]),
    "cycles_now": (c_uint64, []),
    "cycles_to_ns": (c_double, [c_uint64]),
    "cycles_per_second": (c_double, [POINTER(c_char_p)]),
    "cpus": (c_size_t, [POINTER(CpuInfo), c_size_t]),
    "nodes": (c_size_t, [POINTER(NodeInfo), c_size_t]),
    "distance": (c_int, [c_int, c_int]),
    "refusal": (c_char_p, []),
    "why_not": (c_char_p, []),
    "cause_name": (c_char_p, [c_uint32]),
    "cause_advice": (c_char_p, [c_uint32]),
    **{
        f"{letter}{name}": (real, _ONE)
        for letter, real in (("s", c_float), ("d", c_double))
        for name in ("sum", "sumsq", "nrm2", "asum", "amax", "amin")
    },
    "sdot": (c_float, _TWO),
    "ddot": (c_double, _TWO),
    "cdotu": (FloatComplex, _TWO),
    "cdotc": (FloatComplex, _TWO),
    "zdotu": (DoubleComplex, _TWO),
    "zdotc": (DoubleComplex, _TWO),
    "saxpy": (None, [c_size_t, c_float, c_void_p, c_ssize_t, c_void_p, c_ssize_t]),
    "daxpy": (None, [c_size_t, c_double, c_void_p, c_ssize_t, c_void_p, c_ssize_t]),
}
"""Each function without its prefix `largesse_`: the type of its result, and those of its arguments."""
