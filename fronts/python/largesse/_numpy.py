"""Gives NumPy's arrays the memory of the library while the session runs (NEP 49).

The handler of NumPy's *default* is replaced, and not the one of a context: a context is a thread's or a task's own, so
that arrays of all other threads would be left out. NumPy's former functions stay the allocator below, which serves
small arrays, and all arrays while large pages are switched off. The handler stays until the process ends, because
arrays are freed by it.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from typing import Any

from . import _abi
from ._error import Error
from ._library import library, why_not

_NAME = b"largesse"
_CAPSULE = b"mem_handler"
_CORES = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
"""NumPy's C module, from NumPy 2 on and before."""
_GET_HANDLER_NAME = "get_handler_name"
_DEFAULT_HANDLER = 306
"""The entry of NumPy's C interface that holds the address of its default handler, since NumPy 1.22."""

_lock = threading.Lock()


class _Handler(ctypes.Structure):
    """Mirrors NumPy's `PyDataMem_Handler`."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _abi.Allocator)]


def install() -> None:
    """Makes NumPy's arrays come from the library; nothing changes when they do already."""
    module = _core()
    name_of_handler = getattr(module, _GET_HANDLER_NAME, None)
    if name_of_handler is None:
        import numpy

        raise Error(
            f"NumPy {numpy.__version__} cannot change its allocator: update it to 1.22 or later, or start Python "
            f"by `largesse run -- python`"
        )
    with _lock:
        _replace_default(module)
    now = name_of_handler()
    if now != _NAME.decode():
        raise Error(
            f"NumPy's arrays are allocated by the handler {now!r} in this context, which another package has "
            f"set: undo that, or start Python by `largesse run -- python`"
        )


def is_installed() -> bool:
    """Returns whether NumPy is loaded and its arrays come from the library."""
    for name in _CORES:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, _GET_HANDLER_NAME):
            return bool(_Capsule(module).handler().name == _NAME)
    return False


def _core() -> Any:
    """Imports NumPy's C module."""
    try:
        import numpy
    except ImportError as error:
        raise Error(
            f"there is no NumPy whose arrays could get large pages ({error}): install it, or start Python by "
            f"`largesse run -- python`, which serves every large block"
        ) from None
    for name in _CORES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise Error(
        f"NumPy {numpy.__version__} has no C module at {' or '.join(_CORES)}: start Python by `largesse run -- python`"
    )


class _Capsule:
    """The capsule of NumPy's default handler."""

    def __init__(self, module: Any) -> None:
        python = ctypes.pythonapi
        self._get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
            ("PyCapsule_GetPointer", python)
        )
        get_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
        self._set_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
            ("PyCapsule_SetPointer", python)
        )
        entries = ctypes.cast(self._get(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
        self._capsule = ctypes.cast(entries[_DEFAULT_HANDLER], ctypes.POINTER(ctypes.c_void_p))[0]
        self._address = get_at(self._capsule, _CAPSULE)

    def handler(self) -> _Handler:
        """Returns the default handler, without copying it."""
        return _Handler.from_address(self._address)

    def allocator(self) -> int:
        """Returns the address of the handler's functions."""
        return int(self._address) + _Handler.allocator.offset

    def point_to(self, handler: _Handler) -> None:
        """Makes NumPy use another handler, which lives as long as the process."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))
        self._set_at(self._capsule, ctypes.addressof(handler))


def _replace_default(module: Any) -> None:
    capsule = _Capsule(module)
    former = capsule.handler()
    if former.name == _NAME:
        return
    if former.name != b"default_allocator" or former.version != 1:
        raise Error(
            f"NumPy's arrays are allocated by the handler {former.name.decode()!r} (version {former.version}), "
            f"which this module does not know: start Python by `largesse run -- python`"
        )
    handler = _Handler(name=_NAME, version=1)
    if library().allocator(capsule.allocator(), handler.allocator) != _abi.OK:
        raise Error(f"large pages cannot be used here: {why_not()}")
    capsule.point_to(handler)
