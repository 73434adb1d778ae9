"""Lists the large blocks of this process, and says on which pages an array lies."""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional

from . import _abi, _table
from ._buffer import has_buffer, memory
from ._error import Error
from ._library import library

_COLUMNS = ("address", "size", "kind", "on large pages", "node")


class Block(NamedTuple):
    """A range of memory, and the pages that it lies on."""

    address: int
    size: int
    """Number of bytes."""
    kind: str
    """Kind of pages: "thp", "hugetlb" or "small", or two in their order, as in "hugetlb+thp"; "other" for memory that
    Largesse does not serve."""
    large_bytes: Optional[int]
    """Number of resident bytes that are really on large pages; None if the kernel does not say (before Linux 6.7)."""
    node: Optional[int]
    """NUMA node of the first touched page; None if no page is touched, or the kernel does not say."""

    def _row(self) -> List[Any]:
        share = None
        if self.large_bytes is not None:
            share = f"{_table.size(self.large_bytes)} ({100 * self.large_bytes // max(self.size, 1)} %)"
        return [hex(self.address), _table.size(self.size), self.kind, share, self.node]

    def _repr_html_(self) -> str:
        return _table.as_html(_COLUMNS, [self._row()])


class Blocks(List[Block]):
    """A list of blocks that prints as a table."""

    def __repr__(self) -> str:
        return _table.text(_COLUMNS, [block._row() for block in self]) if self else "no large block"

    def _repr_html_(self) -> str:
        return _table.as_html(_COLUMNS, [block._row() for block in self])


def blocks() -> Blocks:
    """Returns the large blocks of this process, ordered by address.

    >>> import largesse
    >>> import numpy
    >>> with largesse.pages():
    ...     a = numpy.ones(10_000_000)
    >>> [block.size for block in largesse.blocks() if block.address <= a.ctypes.data < block.address + block.size]
    [80000000]
    """
    room = 0
    while True:
        count = library().blocks(None, 0)
        room = max(room, count + 16)  # other threads allocate
        found = (_abi.BlockInfo * room)()
        found[0].struct_size = ctypes.sizeof(_abi.BlockInfo)
        count = library().blocks(found, room)
        if count == _abi.REFUSED:
            raise Error("the library refused the request for its blocks: install it and this module from one release")
        if count <= room:
            return Blocks(_block(found[at]) for at in range(count))
        room = count


def where(array: Any) -> Block:
    """Returns on which pages an array lies: size, kind of pages, bytes really on large pages, NUMA node.

    `array` is a NumPy array, also a view, or another object with a buffer. Arrays that Largesse does not serve are
    described, too: their kind is "other".

    >>> import largesse
    >>> import numpy
    >>> with largesse.pages():
    ...     a = numpy.ones(4_000_000)
    >>> found = largesse.where(a)
    >>> found.kind, found.size
    ('thp', 32000000)
    """
    if not has_buffer(array):
        raise Error(
            f"where() takes an array with memory of its own, not {type(array).__name__}: pass column.to_numpy() "
            f"of a data frame's column, or tensor.numpy()"
        )
    found = _abi.BlockInfo(struct_size=ctypes.sizeof(_abi.BlockInfo))
    with memory(array) as data:
        low, high = data.bounds()
        if library().inspect(low, high - low, found) != _abi.OK:
            raise Error("the library refused the question: install it and this module from one release")
    return _block(found)


def _block(found: Any) -> Block:
    kinds = [found.kind, found.rest_kind] if found.rest_bytes else [found.kind]
    return Block(
        address=found.address,
        size=found.size,
        kind="+".join(_abi.KINDS.get(kind, "unknown") for kind in kinds),
        large_bytes=found.large_bytes if found.exact else None,
        node=found.node if found.node >= 0 else None,
    )
