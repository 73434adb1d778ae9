"""Reads the memory of arrays by Python's buffer protocol, without NumPy."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple

from ._error import Error

_FORMAT, _STRIDES, _WRITABLE = 0x04, 0x18, 0x01


class _View(ctypes.Structure):
    """Mirrors Python's `Py_buffer`."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


class Memory(NamedTuple):
    """The memory of an array, valid inside the `with` block of `memory`."""

    address: int
    """Address of the first element."""
    format: str
    """Type of the elements as in the module struct, without the sign for native order."""
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Distances in bytes of neighbours along each axis."""

    def bounds(self) -> tuple[int, int]:
        """Returns the lowest address of an element, and the end of the highest."""
        low = high = self.address
        for count, stride in zip(self.shape, self.strides):
            if count == 0:
                return self.address, self.address
            step = (count - 1) * stride
            low, high = (low + step, high) if step < 0 else (low, high + step)
        return low, high + self.itemsize


@contextmanager
def memory(array: Any, writable: bool = False) -> Iterator[Memory]:
    """Holds the buffer of `array` in a `with` block; raises TypeError for an object without a buffer."""
    view = _View()
    python = ctypes.pythonapi
    flags = _FORMAT | _STRIDES | (_WRITABLE if writable else 0)
    python.PyObject_GetBuffer(ctypes.py_object(array), ctypes.byref(view), flags)
    try:
        order = (view.format or b"B").decode()
        order = order.lstrip("@=^") if order[:1] != "<" or not _is_little() else order[1:]
        shape = tuple(view.shape[at] for at in range(view.ndim))
        strides = tuple(view.strides[at] for at in range(view.ndim))
        yield Memory(view.buf or 0, order, view.itemsize, shape, strides)
    finally:
        python.PyBuffer_Release(ctypes.byref(view))


def _is_little() -> bool:
    import sys

    return sys.byteorder == "little"


def has_buffer(array: Any) -> bool:
    """Returns whether an object has a buffer with strides."""
    try:
        with memory(array):
            return True
    except (TypeError, BufferError, ValueError):
        return False


def as_array(array: Any, name: str) -> Any:
    """Returns `array` itself if it has a buffer, else the NumPy array that it converts to (a Series, a tensor)."""
    if hasattr(array, "mask") and hasattr(array, "filled"):
        raise Error(f"{name} is a masked array: fill it first, as in {name}.filled(0)")
    if has_buffer(array):
        return array
    if hasattr(array, "__array__"):
        import numpy

        return numpy.asarray(array)
    raise Error(
        f"{name} must be an array, not {type(array).__name__}: use numpy.asarray({name}), or array.array('d', {name})"
    )
