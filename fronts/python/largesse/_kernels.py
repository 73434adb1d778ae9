"""Sums, norms and products with the same bits on every processor and for any number of threads."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple, Optional, Tuple, Union

from . import _abi, _table
from ._buffer import Memory, as_array, memory
from ._error import Error
from ._library import library

Number = Union[float, complex]

_TYPES = {"f": ("s", 4, False), "d": ("d", 8, False), "Zf": ("s", 4, True), "Zd": ("d", 8, True)}
_TAKEN = "float32, float64, complex64 or complex128"


class _Vector(NamedTuple):
    """A vector of elements at equal distances, as BLAS describes it."""

    length: int
    lowest: int
    """Lowest address of an element."""
    step: int
    """Distance of neighbours in bytes; negative if the first element has the highest address."""


class _Kind(NamedTuple):
    letter: str
    """Prefix of the names of the library's kernels: s for float, d for double."""
    real_bytes: int
    is_complex: bool

    @property
    def item_bytes(self) -> int:
        return self.real_bytes * (2 if self.is_complex else 1)


def _kind(data: Memory, name: str) -> _Kind:
    found = _TYPES.get(data.format)
    if found is None:
        raise Error(
            f"{name} has elements of the type {data.format!r}; it must have {_TAKEN} in this machine's byte order: "
            f"convert it by {name}.astype(float)"
        )
    return _Kind(*found)


def _vector(data: Memory, kind: _Kind) -> Optional[_Vector]:
    """Returns the elements in the order of their indices as one vector; None if their distances differ, or are no
    multiple of the size of an element."""
    count, step = 1, kind.item_bytes
    for length, stride in zip(reversed(data.shape), reversed(data.strides)):
        if length == 1:
            continue
        if count == 1:
            step = stride
        elif stride != step * count:
            if 0 not in data.shape:
                return None
        count *= length
    if count == 0:
        return _Vector(0, data.address, kind.item_bytes)
    if data.address % kind.real_bytes or step % kind.item_bytes:
        return None
    return _Vector(count, min(data.address, data.address + (count - 1) * step), step)


@contextmanager
def _as_vector(array: Any, name: str) -> Iterator[Tuple[_Vector, _Kind]]:
    """Holds the memory of an array as a vector, which is a copy if its distances differ."""
    with memory(array) as data:
        kind = _kind(data, name)
        vector = _vector(data, kind)
        if vector is not None:
            yield vector, kind
            return
    # In the order of indices, as the vector itself would be.
    with memory(memoryview(array).tobytes()) as copied:
        yield _Vector(copied.shape[0] // kind.item_bytes, copied.address, kind.item_bytes), kind


def _real(name: str, kind: _Kind, vector: _Vector, offset: int = 0) -> float:
    function = getattr(library(), kind.letter + name)
    return float(function(vector.length, vector.lowest + offset, vector.step // kind.real_bytes))


def _sum(kind: _Kind, vector: _Vector) -> Number:
    if not kind.is_complex:
        return _real("sum", kind, vector)
    return complex(_real("sum", kind, vector), _real("sum", kind, vector, kind.real_bytes))


def _over_parts(name: str) -> Callable[[_Kind, _Vector], Number]:
    """Returns a kernel that takes the real and imaginary parts of complex numbers as one vector."""

    def kernel(kind: _Kind, vector: _Vector) -> Number:
        if kind.is_complex:
            vector = _Vector(2 * vector.length, vector.lowest, kind.real_bytes)
        return _real(name, kind, vector)

    return kernel


def _reduce(kernel: Callable[[_Kind, _Vector], Number], x: Any, axis: Optional[int], contiguous: bool) -> Any:
    x = as_array(x, "x")
    if axis is not None:
        return _along(kernel, x, axis, contiguous)
    with _as_vector(x, "x") as (vector, kind):
        if not (contiguous and kind.is_complex and vector.step != kind.item_bytes):
            return kernel(kind, vector)
    with memory(memoryview(x).tobytes()) as copied:
        return kernel(kind, _Vector(vector.length, copied.address, kind.item_bytes))


def _along(kernel: Callable[[_Kind, _Vector], Number], x: Any, axis: int, contiguous: bool) -> Any:
    try:
        import numpy
    except ImportError:
        raise Error("axis needs NumPy, for the array of the results: leave it out, or install NumPy") from None
    if isinstance(axis, bool) or not isinstance(axis, (int, numpy.integer)):
        raise Error(f"axis must be one number or None, not {axis!r}: reduce several axes one after the other")
    x = numpy.asarray(x)
    if not -x.ndim <= axis < x.ndim:
        raise Error(f"axis {axis} does not exist: x has {_table.counted(x.ndim, 'dimension')}")
    rows = numpy.moveaxis(x, axis, -1)
    with memory(rows) as data:
        kind = _kind(data, "x")
        steps = data.strides
        misplaced = [step % kind.real_bytes for step in (data.address, *steps)]
    if any(misplaced) or steps[-1] % kind.item_bytes or contiguous and kind.is_complex and steps[-1] != kind.item_bytes:
        rows = numpy.ascontiguousarray(rows)
    result = numpy.empty(rows.shape[:-1], x.dtype if kernel is _sum else x.real.dtype)
    with memory(rows) as data:
        count, step = data.shape[-1], data.strides[-1]
        for index in itertools.product(*map(range, data.shape[:-1])):
            first = data.address + sum_of(a * b for a, b in zip(index, data.strides))
            result[index] = kernel(kind, _Vector(count, min(first, first + (count - 1) * step), step))
    return result


sum_of = sum
"""Python's own `sum`, which the function of this module hides."""


def sum(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the sum of the elements, or an array of the sums along one axis.

    The elements are added in an order that depends on their number alone, so that the result has the same bits for
    every memory layout, processor and number of threads.

    >>> import array
    >>> import largesse
    >>> largesse.sum(array.array("d", [0.1, 0.2, 0.3]))
    0.6000000000000001
    >>> import numpy
    >>> largesse.sum(numpy.ones((2, 3)), axis=0)
    array([2., 2., 2.])
    """
    return _reduce(_sum, x, axis, contiguous=False)


_sumsq, _nrm2, _asum, _amax, _amin = map(_over_parts, ("sumsq", "nrm2", "asum", "amax", "amin"))


def sumsq(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the sum of the squares of the elements' absolute values, or those along one axis.

    >>> import array
    >>> import largesse
    >>> largesse.sumsq(array.array("d", [3, 4]))
    25.0
    """
    return _reduce(_sumsq, x, axis, contiguous=True)


def nrm2(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the Euclidean norm, or those along one axis. It overflows only if the result does.

    >>> import array
    >>> import largesse
    >>> largesse.nrm2(array.array("d", [3, 4])), largesse.nrm2(array.array("d", [1e200]))
    (5.0, 1e+200)
    """
    return _reduce(_nrm2, x, axis, contiguous=True)


def asum(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the sum of absolute values, or those along one axis; of complex numbers, as in BLAS, that of the absolute
    values of their real and imaginary parts.

    >>> import array
    >>> import largesse
    >>> largesse.asum(array.array("d", [1, -2, 3]))
    6.0
    """
    return _reduce(_asum, x, axis, contiguous=True)


def amax(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the largest absolute value, or those along one axis; 0 if there are no elements. Of complex numbers it is
    the largest absolute value of a real or imaginary part.

    It makes no array of absolute values, as `numpy.abs(x).max()` does. `numpy.amax` is another function: it keeps the
    signs.

    >>> import array
    >>> import largesse
    >>> largesse.amax(array.array("d", [1, -3, 2]))
    3.0
    >>> import numpy
    >>> largesse.amax(numpy.array([[1, -3], [-4, 2]], float), axis=0)
    array([4., 3.])
    """
    return _reduce(_amax, x, axis, contiguous=True)


def amin(x: Any, axis: Optional[int] = None) -> Any:
    """Returns the smallest absolute value, or those along one axis; infinity if there are no elements. Of complex
    numbers it is the smallest absolute value of a real or imaginary part.

    >>> import array
    >>> import largesse
    >>> largesse.amin(array.array("d", [3, -1, 2]))
    1.0
    """
    return _reduce(_amin, x, axis, contiguous=True)


def dot(x: Any, y: Any) -> Number:
    """Returns the sum of x[i] * y[i] of two vectors of one type; each product is added with one rounding.

    >>> import array
    >>> import largesse
    >>> largesse.dot(array.array("d", [1, 2, 3]), array.array("d", [4, 5, 6]))
    32.0
    """
    return _product(x, y, "dotu")


def vdot(x: Any, y: Any) -> Number:
    """Returns the sum of x[i] * y[i] with x conjugated, if it is complex.

    >>> import largesse
    >>> import numpy
    >>> largesse.vdot(numpy.array([1j]), numpy.array([1j]))
    (1+0j)
    """
    return _product(x, y, "dotc")


def _product(x: Any, y: Any, of_complex: str) -> Number:
    x, y = as_array(x, "x"), as_array(y, "y")
    with _as_vector(x, "x") as (a, kind), _as_vector(y, "y") as (b, other):
        _check_pair(x, y, kind, other)
        if not kind.is_complex:
            function = getattr(library(), kind.letter + "dot")
        else:
            function = getattr(library(), {"s": "c", "d": "z"}[kind.letter] + of_complex)
        size = kind.item_bytes
        result = function(a.length, a.lowest, a.step // size, b.lowest, b.step // size)
        return complex(result.real, result.imag) if kind.is_complex else float(result)


def _check_pair(x: Any, y: Any, kind: _Kind, other: _Kind) -> None:
    for name, array in (("x", x), ("y", y)):
        dimensions = memoryview(array).ndim
        if dimensions != 1:
            axes = _table.counted(dimensions, "dimension")
            raise Error(f"{name} has {axes} and must be a vector: pass {name}.ravel()")
    if kind != other:
        raise Error(
            f"x has elements of {kind.item_bytes} bytes and y of {other.item_bytes}, or one is complex and one "
            f"not: convert one, as in y.astype(x.dtype)"
        )
    lengths = len(memoryview(x)), len(memoryview(y))
    if lengths[0] != lengths[1]:
        elements = _table.counted(lengths[0], "element")
        raise Error(f"x has {elements} and y {lengths[1]}: they must be as long as each other")


def axpy(a: float, x: Any, y: Any) -> None:
    """Adds a * x[i] to each y[i] in place, rounded once.

    >>> import array
    >>> import largesse
    >>> y = array.array("d", [1, 1])
    >>> largesse.axpy(2, array.array("d", [1, 2]), y)
    >>> y.tolist()
    [3.0, 5.0]
    """
    x = as_array(x, "x")
    try:
        held = memory(y, writable=True)
        data = held.__enter__()
    except (TypeError, BufferError, ValueError) as error:
        raise Error(f"y must be an array that can be written to: {error}") from None
    try:
        kind = _kind(data, "y")
        target = _vector(data, kind)
        if kind.is_complex or target is None:
            raise Error("y must be a vector of float32 or float64 whose elements are aligned: use y.copy()")
        with _as_vector(x, "x") as (source, other):
            _check_pair(x, y, kind, other)
            if source != target and _overlap(source, target, kind):
                with memory(memoryview(x).tobytes()) as copied:
                    _axpy(kind, a, _Vector(source.length, copied.address, kind.item_bytes), target)
            else:
                _axpy(kind, a, source, target)
    finally:
        held.__exit__(None, None, None)


def _overlap(x: _Vector, y: _Vector, kind: _Kind) -> bool:
    ends = [vector.lowest + (vector.length - 1) * abs(vector.step) + kind.item_bytes for vector in (x, y)]
    return x.lowest < ends[1] and y.lowest < ends[0]


def _axpy(kind: _Kind, a: float, x: _Vector, y: _Vector) -> None:
    size = kind.item_bytes
    getattr(library(), kind.letter + "axpy")(x.length, a, x.lowest, x.step // size, y.lowest, y.step // size)


def threads(count: Optional[int] = None) -> int:
    """Returns the number of threads that a reduction of a long array uses, after setting it to `count` if given.

    0 means one for each processor. No result depends on it.

    >>> import largesse
    >>> largesse.threads(1)
    1
    >>> largesse.threads(0) >= 1
    True
    """
    if count is not None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**31:
            raise Error(f"count must be a whole number from 0 on, not {count!r}")
        if library().set_threads(count) != _abi.OK:
            raise Error(f"the library refused {_table.counted(count, 'thread')}")
    return int(library().threads())
