"""The one exception of the module."""


class Error(Exception):
    """Largesse cannot do what was asked. The message says why, and what to type or do.

    >>> import largesse
    >>> largesse.enable(min_kb=1)
    Traceback (most recent call last):
    ...
    largesse.Error: min_kb must be a number of KiB from 64 on, not 1
    """

    __module__ = "largesse"
