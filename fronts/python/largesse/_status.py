"""The state of the library in this process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _abi, _table
from ._error import Error
from ._library import library, path_of_library, stats, why_not


class Refusal(NamedTuple):
    """Requests that were served with less than they asked for."""

    cause: str
    times: int
    advice: str


@dataclass(frozen=True, repr=False)
class Status:
    """Whether large pages can be used, are on, and what was not granted."""

    support: bool
    """Whether arrays can be served in this process."""
    why: Optional[str]
    """The reason why arrays cannot be served, and what to do; None if they can."""
    enabled: bool
    """Whether new arrays are served."""
    hooked: str
    """How calls reach the library: "no", "preloaded" (by `largesse run`), "functions" (NumPy's handler), "patched"
    (a session of R in the same process)."""
    library: Optional[str]
    """Path of the library."""
    version: str = ""
    """Version of the library's interface."""
    pages: str = ""
    """The kind of pages that is asked for."""
    min_kb: float = 0
    max_kb: float = 0
    """Bounds of the sizes that are served, in KiB; 2**40 means no limit."""
    large_page_bytes: int = 0
    """Size of the system's large page; 0 if it has none."""
    blocks: int = 0
    live_bytes: int = 0
    peak_bytes: int = 0
    retained_bytes: int = 0
    """Bytes that are kept for the next arrays; trim() returns them to the system."""
    allocations: int = 0
    frees: int = 0
    reused: int = 0
    not_granted: Tuple[Refusal, ...] = ()
    far: Optional[Dict[str, int]] = None
    """Counters of far memory in bytes and calls; None without it."""

    def _rows(self) -> List[Tuple[str, Any]]:
        sizes = {"large_page_bytes", "live_bytes", "peak_bytes", "retained_bytes"}
        rows: List[Tuple[str, Any]] = []
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in sizes:
                rows.append((name.replace("_bytes", ""), _table.size(value)))
            elif name == "why" and value is None or name == "far":
                pass
            elif name == "not_granted":
                times = [_table.counted(one.times, "time") for one in value]
                rows += [(f"not granted: {one.cause}", f"{n}: {one.advice}") for n, one in zip(times, value)]
            elif name in ("min_kb", "max_kb"):
                rows.append((name, "no limit" if value >= 2**40 else f"{value:g}"))
            else:
                rows.append((name, value))
        rows += [(f"far {name}", count) for name, count in (self.far or {}).items()]
        return rows

    def __repr__(self) -> str:
        return "\n".join(f"{name:20} {_table._cell(value)}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        return _table.as_html(("", "value"), self._rows())


def status() -> Status:
    """Returns whether large pages can be used here and are on, the counters, and refusals with advice.

    It fails nowhere: on a system without the library, `support` is False and `why` says what to do.

    >>> import largesse
    >>> largesse.status().support
    True
    >>> [refusal.cause for refusal in largesse.status().not_granted if refusal.times > 1000]
    []
    """
    try:
        now = stats()
        why = _why(now)
    except Error as error:
        return Status(support=False, why=str(error), enabled=False, hooked="no", library=path_of_library())
    version = library().version()
    counts = (ctypes.c_uint64 * library().not_granted(None, 0))()
    library().not_granted(counts, len(counts))
    return Status(
        support=why is None,
        why=why,
        enabled=now.enabled == 1,
        hooked=_hooked(now),
        library=path_of_library(),
        version=f"{version >> 16}.{version & 0xFFFF}",
        pages=_abi.PAGES[now.pages],
        min_kb=now.min_bytes / 1024,
        max_kb=min(now.max_bytes / 1024, 2.0**40),
        large_page_bytes=now.large_page_bytes,
        blocks=now.blocks,
        live_bytes=now.live_bytes,
        peak_bytes=now.peak_bytes,
        retained_bytes=now.retained_bytes,
        allocations=now.allocations,
        frees=now.frees,
        reused=now.reused,
        not_granted=tuple(
            Refusal(library().cause_name(at).decode(), count, library().cause_advice(at).decode())
            for at, count in enumerate(counts)
            if count
        ),
        far={name: getattr(now, "far_" + name) for name in _abi.FAR} if now.far_local_bytes else None,
    )


def _hooked(now: Any) -> str:
    hooked = _abi.HOOKED[now.hooked]
    return "functions" if hooked != "preloaded" and _installed() else hooked


def _installed() -> bool:
    from . import _numpy

    return _numpy.is_installed()


def _why(now: Any) -> Optional[str]:
    """Returns the reason why arrays cannot be served; None if they can, also before the first is served."""
    why = why_not()
    if why and _abi.HOOKED[now.hooked] == "no":
        # The library does not know that NumPy's handler can be replaced, and says what else there is.
        probe = _abi.Allocator()
        if library().allocator(ctypes.addressof(probe), probe) == _abi.OK:
            return None
        return why_not()
    return why
