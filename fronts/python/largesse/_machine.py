"""Processors, NUMA nodes and time."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from . import _abi, _table
from ._error import Error
from ._library import library


class Processor(NamedTuple):
    """A processor that is online."""

    cpu: int
    """The kernel's number of the processor."""
    core: Optional[int]
    package: Optional[int]
    """Numbers of the processor's core and package, counted from 0; None if unknown."""
    node: Optional[int]
    """Number of the processor's NUMA node; None if it has none, or it is unknown."""
    permitted: bool
    """Whether this process may run on the processor."""


class Node(NamedTuple):
    """A NUMA node."""

    node: int
    """The kernel's number of the node."""
    cpus: int
    """Number of the node's processors; 0 if it has only memory."""
    bytes: Optional[int]
    free_bytes: Optional[int]
    """Size of its memory in bytes, and how much of it is free; None if unknown."""


class Machine(NamedTuple):
    """Processors and NUMA nodes of this machine, and its cycle counter."""

    processors: Tuple[Processor, ...]
    nodes: Tuple[Node, ...]
    distances: Dict[Tuple[int, int], Optional[int]]
    """Distance of each pair of nodes: 10 is local, 20 twice as far; None if unknown."""
    counter: str
    """The counter of cycles(): "TSC", "CNTVCT", or "clock"."""
    hertz: float
    """Ticks per second of that counter."""

    def __repr__(self) -> str:
        return "\n\n".join(
            [_table.text(columns, rows) for columns, rows in self._tables()]
            + [f"{self.counter}: {self.hertz / 1e6:.1f} million ticks per second"]
        )

    def _repr_html_(self) -> str:
        return "".join(_table.as_html(columns, rows) for columns, rows in self._tables())

    def _tables(self) -> List[Tuple[Tuple[str, ...], List[Any]]]:
        nodes = [(*node[:2], *(None if it is None else _table.size(it) for it in node[2:])) for node in self.nodes]
        return [(Processor._fields, list(self.processors)), (("node", "cpus", "memory", "free"), nodes)]


def machine() -> Machine:
    """Returns processors, NUMA nodes, their distances, and the counter of this machine.

    >>> import largesse
    >>> any(processor.permitted for processor in largesse.machine().processors)
    True
    """
    processors = tuple(
        Processor(found.cpu, _known(found.core), _known(found.package), _node(found.node), found.permitted != 0)
        for found in _all(_abi.CpuInfo, library().cpus)
    )
    nodes = tuple(
        Node(found.node, found.cpus, _known(found.bytes, 64), _known(found.free_bytes, 64))
        for found in _all(_abi.NodeInfo, library().nodes)
    )
    distances = {(a.node, b.node): _node(library().distance(a.node, b.node)) for a in nodes for b in nodes}
    name = ctypes.c_char_p()
    hertz = library().cycles_per_second(name)
    return Machine(processors, nodes, distances, (name.value or b"").decode(), hertz)


def _all(structure: Any, function: Any) -> List[Any]:
    count = function(None, 0)
    found = (structure * (count + 1))()
    found[0].struct_size = ctypes.sizeof(structure)
    return list(found[: min(function(found, count), count)])  # processors may have gone offline


def _known(number: int, bits: int = 32) -> Optional[int]:
    return None if number == 2**bits - 1 else number


def _node(number: int) -> Optional[int]:
    return number if number >= 0 else None


def pin(cpus: Union[str, int, Iterable[int]], process: bool = True) -> None:
    """Binds all threads of this process to processors, or with `process=False` the calling thread.

    `cpus` is a number, numbers, or a text as for `largesse pin --cpus`: "0-3,8", "0-14:2", "0xff", "N:0-3". Threads that are started later inherit the binding.

    >>> import largesse
    >>> permitted = [cpu.cpu for cpu in largesse.machine().processors if cpu.permitted]
    >>> largesse.pin(permitted)
    >>> largesse.pin("none")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    largesse.Error: 'none' is not a list of processors; write 0-3,8 or 0-14:2 or 0xff, or name a group: ...
    """
    if isinstance(cpus, int) and not isinstance(cpus, bool):
        cpus = [cpus]
    if not isinstance(cpus, str):
        numbers = list(cpus) if isinstance(cpus, Iterable) else [cpus]
        if not numbers or not all(isinstance(cpu, int) and not isinstance(cpu, bool) and cpu >= 0 for cpu in numbers):
            raise Error(f"cpus must be numbers from 0 on, or a list such as '0-3,8', not {cpus!r}")
        cpus = ",".join(map(str, numbers))
    if "\0" in cpus:
        raise Error(f"cpus must be a list such as '0-3,8', not {cpus!r}")
    if library().pin(cpus.encode(), int(process)) != _abi.OK:
        raise Error((library().refusal() or b"the kernel refused to bind").decode())


class cycles:
    """Times the code of a `with` block by the processor's counter; used again, it keeps all times.

    Differences are time, not core cycles. A reading from Python costs about a microsecond.

    >>> import largesse
    >>> watch = largesse.cycles()
    >>> for _ in range(3):
    ...     with watch:
    ...         total = sum(range(1000))
    >>> len(watch.ns), watch.best > 0
    (3, True)
    """

    def __init__(self) -> None:
        self._now = library().cycles_now
        self._now()  # the first call of a process measures the counter's frequency
        self.ticks: List[int] = []
        """Ticks of each block that has ended."""
        self._begun: List[int] = []

    def __enter__(self) -> cycles:
        self._begun.append(self._now())
        return self

    def __exit__(self, *_: Any) -> None:
        now = self._now()
        self.ticks.append(now - self._begun.pop())

    @property
    def ns(self) -> List[float]:
        """Nanoseconds of each block that has ended."""
        return [library().cycles_to_ns(ticks) for ticks in self.ticks]

    @property
    def best(self) -> float:
        """The shortest time in nanoseconds."""
        return min(self._times())

    @property
    def median(self) -> float:
        """The median time in nanoseconds."""
        times = sorted(self._times())
        return (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2

    def _times(self) -> List[float]:
        if not self.ticks:
            raise Error("nothing was timed yet: put the code into `with watch:`")
        return self.ns

    def __repr__(self) -> str:
        if not self.ticks:
            return "nothing timed yet"
        return f"{self.best:.0f} ns at best, {self.median:.0f} in the middle of {len(self.ticks)}"
