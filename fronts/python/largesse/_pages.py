"""Switching large pages on and off."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Iterator

from . import _abi
from ._error import Error
from ._library import library, stats, why_not

_LEAST_KB = 64


class _Switch:
    """The state of large pages, which are on after `enable`, and while any thread is inside `pages`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._enabled = False

    def change(self, enabled: bool | None = None, inside: int = 0) -> None:
        with self._lock:
            if self._inside == 0:
                self._enabled = stats().enabled == 1
            wanted = self._enabled if enabled is None else enabled
            if library().enable(int(wanted or self._inside + inside > 0)) != _abi.OK:
                raise Error(f"large pages cannot be used here: {why_not()}")
            self._enabled, self._inside = wanted, self._inside + inside


_switch = _Switch()


def enable(min_kb: float | None = None, max_kb: float | None = None) -> None:
    """Puts new large arrays on large pages, in all threads, from now on.

    In a session that was started as usual these are NumPy's arrays, including those that pandas, SciPy and others make
    with NumPy. In one that was started by `largesse run -- python` all large blocks are on large pages from the start.
    Arrays that exist already stay where they are.

    `min_kb` and `max_kb` bound the sizes, in KiB, of the arrays that are served; by default they stay as they are.

    >>> import largesse
    >>> import numpy
    >>> largesse.enable()
    >>> a = numpy.ones(1_000_000)
    >>> largesse.where(a).kind
    'thp'
    """
    _set_limits(min_kb, max_kb)
    _ready()
    _switch.change(enabled=True)


def disable() -> None:
    """Stops serving new arrays. Existing ones stay valid, and on large pages.

    >>> import largesse
    >>> largesse.disable()
    >>> largesse.status().enabled
    False
    """
    _switch.change(enabled=False)


@contextmanager
def pages() -> Iterator[None]:
    """Puts arrays that are made inside the `with` block on large pages, and restores the former state.

    Arrays that other threads make at the same time get large pages, too.

    >>> import largesse
    >>> import numpy
    >>> largesse.disable()
    >>> with largesse.pages():
    ...     a = numpy.zeros((1000, 1000))
    >>> b = numpy.zeros((1000, 1000))
    >>> largesse.where(a).kind, largesse.where(b).kind
    ('thp', 'other')
    """
    _ready()
    _switch.change(inside=1)
    try:
        yield
    finally:
        _switch.change(inside=-1)


def trim(keep_kb: float = 0) -> int:
    """Returns memory that is kept for reuse to the system, except for `keep_kb` KiB; returns the number of bytes.

    >>> import largesse
    >>> largesse.trim() >= 0
    True
    """
    if not isinstance(keep_kb, (int, float)) or not 0 <= keep_kb <= 2**40:
        raise Error(f"keep_kb must be a number of KiB from 0 on, not {keep_kb!r}")
    return int(library().trim(int(keep_kb * 1024)))


def _ready() -> None:
    """Makes sure that the calls of this process reach the library."""
    if _abi.HOOKED[stats().hooked] != "preloaded":
        from . import _numpy

        _numpy.install()


def _set_limits(min_kb: float | None, max_kb: float | None) -> None:
    for name, value in (("min_kb", min_kb), ("max_kb", max_kb)):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= _LEAST_KB
        ):
            raise Error(f"{name} must be a number of KiB from {_LEAST_KB} on, not {value!r}")
    if min_kb is None and max_kb is None:
        return
    now = stats()
    least = now.min_bytes if min_kb is None else min(int(min_kb * 1024), _abi.NO_LIMIT)
    most = now.max_bytes if max_kb is None else _abi.NO_LIMIT if max_kb >= 2**40 else int(max_kb * 1024)
    if least > most:
        raise Error(
            f"min_kb ({least / 1024:g}) is above max_kb ({most / 1024:g}): give both, as in "
            f"enable(min_kb=256, max_kb=2**40)"
        )
    if library().set_limits(least, most) != _abi.OK:
        raise Error(f"the library refused min_kb={least / 1024:g} and max_kb={most / 1024:g}")
