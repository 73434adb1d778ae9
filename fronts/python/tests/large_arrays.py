"""A plugin for pytest: arrays from 64 KiB on come from the library, and the end says how many did.

`pytest -p large_arrays --pyargs numpy` runs NumPy's own tests so.
"""

import largesse


def pytest_configure(config):
    largesse.enable(min_kb=64)


def pytest_terminal_summary(terminalreporter):
    status = largesse.status()
    terminalreporter.write_line(f"{status.allocations} arrays on large pages, hooked: {status.hooked}")
