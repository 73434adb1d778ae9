"""What several tests need: other Python processes, and the state of this one."""

import os
import subprocess
import sys
import textwrap

import largesse

PRELOADED = largesse.status().hooked == "preloaded"
MIB = 1 << 20
try:
    import numpy

    HAS_NUMPY = True
except ImportError:
    HAS_NUMPY = False


def environment(preload=None, **variables):
    """Returns the variables of this process, or with `preload` those of one without `largesse run`, and others."""
    now = dict(os.environ)
    if preload is not None:
        now = {name: value for name, value in now.items() if not name.startswith("LARGESSE_")}
        now["LD_PRELOAD"] = preload
        now["LARGESSE_LIBRARY"] = largesse.status().library
    return {**now, **variables}


def python(code, *options, program=sys.executable, env=None, check=True):
    """Runs code in another Python, and returns what it printed; on failure what it said instead."""
    words = [program, *options, "-c", textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=300)
    if check and done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def fresh(code, **others):
    """Runs code in a Python that was started as usual, without the library."""
    return python(code, env=environment(preload=""), **others)
