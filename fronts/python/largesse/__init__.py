"""Large pages, far memory and placement for NumPy arrays, in a session that is already running.

>>> import largesse
>>> import numpy
>>> largesse.enable()                       # new large arrays are on large pages
>>> a = numpy.ones(10_000_000)
>>> largesse.where(a).kind
'thp'
>>> largesse.disable()
>>> with largesse.pages():                  # for a few arrays only
...     b = numpy.zeros(10_000_000)
>>> largesse.status().enabled
False
>>> largesse.sum(a)                         # the same bits on every machine
10000000.0

Every error is a `largesse.Error`, whose message says what to type. The guide is docs/python.md.
"""

from ._error import Error
from ._library import unsupported as _unsupported

__version__ = "0.1.0"

__all__ = [
    "Block",
    "Blocks",
    "Error",
    "Machine",
    "Node",
    "Processor",
    "Refusal",
    "Status",
    "amax",
    "amin",
    "asum",
    "axpy",
    "blocks",
    "cycles",
    "disable",
    "dot",
    "enable",
    "far_memory",
    "machine",
    "memory_limit",
    "nrm2",
    "pages",
    "pin",
    "status",
    "sum",
    "sumsq",
    "threads",
    "trim",
    "tuned",
    "vdot",
    "where",
]

_why = _unsupported()
try:
    from ._blocks import Block, Blocks, blocks, where
    from ._far import far_memory, memory_limit, tuned
    from ._kernels import amax, amin, asum, axpy, dot, nrm2, sum, sumsq, threads, vdot
    from ._machine import Machine, Node, Processor, cycles, machine, pin
    from ._pages import disable, enable, pages, trim
    from ._status import Refusal, Status, status
except ImportError:
    # Without ctypes, as in an isolated subinterpreter, each use says why.
    if _why is None:
        raise

    def __getattr__(name: str) -> object:
        if name in __all__:
            raise Error(_why)
        raise AttributeError(f"module 'largesse' has no attribute {name!r}")


if _why is not None:
    import warnings as _warnings

    _warnings.warn(f"largesse can do nothing here: {_why}", RuntimeWarning, stacklevel=2)
