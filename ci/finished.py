"""Runs a program for the comparisons with EusLisp."""
import os, subprocess, tempfile

MOST_OUTPUT = 1 << 24  # bytes that are read of what a program prints


def finished(words, folder, environment, limit):
    """Runs a program with no input, and ends it and all that it started after `limit` seconds. Returns its exit status,
    or None after the time limit, and the bytes that it printed on both outputs."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(child.pid, 9)
        except ProcessLookupError:
            pass
        child.wait()
        output.seek(0)
        return status, output.read(MOST_OUTPUT)
