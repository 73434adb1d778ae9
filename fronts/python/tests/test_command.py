"""The wheel's command, and Python under `largesse run`."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

import largesse
from largesse import _library
from support import HAS_NUMPY, environment

PACKAGED = _library.PACKAGE / "bin" / "largesse"


def command(*words, **options):
    env = {name: value for name, value in environment(preload="").items() if name != "LARGESSE_LIBRARY"}
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=env, **options)


@unittest.skipUnless(PACKAGED.exists(), "the module is not installed from a wheel")
class Command(unittest.TestCase):
    def setUp(self):
        self.script = pathlib.Path(sysconfig.get_path("scripts"), "largesse")

    def test_python_under_run_is_preloaded_by_the_packaged_library(self):
        code = "import largesse; status = largesse.status(); print(status.hooked, status.enabled, status.library)"
        for words in ([self.script], [sys.executable, "-m", "largesse"]):
            done = command(*words, "run", "--", sys.executable, "-c", code)
            library = str(_library.PACKAGE / "lib/liblargesse.so")
            self.assertEqual(done.stdout.split(), ["preloaded", "True", library], done.stderr)

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_large_blocks_of_a_script_are_served(self):
        code = """
import numpy, largesse
print(largesse.where(numpy.ones(1_000_000)).kind, largesse.where(bytes(1 << 20)).kind)
"""
        done = command(self.script, "run", "--", sys.executable, "-c", code)
        self.assertNotIn("other", done.stdout.split(), done.stderr)
        self.assertEqual(len(done.stdout.split()), 2)

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_far_memory_under_run_is_shown(self):
        code = """
import numpy, largesse
print(numpy.ones(20_000_000).sum(), largesse.status().far["local_bytes"] >> 20)
"""
        done = command(self.script, "run", "--local", "64M", "--", sys.executable, "-c", code)
        self.assertEqual(done.stdout.split(), ["20000000.0", "64"], done.stderr)

    def test_status_of_another_process_names_the_way_in(self):
        if not HAS_NUMPY:
            self.skipTest("no NumPy")
        code = """
import os, sys, numpy, largesse
largesse.enable()
a = numpy.ones(1_000_000)
print(os.getpid(), flush=True)
sys.stdin.read()
"""
        env = environment(preload="")
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        ) as other:
            number = other.stdout.readline().strip()
            done = command(self.script, "status", number, "--json")
            other.stdin.close()
        if done.returncode != 0 and "ermi" in done.stderr:
            self.skipTest(f"this user may not read other processes: {done.stderr}")
        self.assertIn('"functions"', done.stdout, done.stderr)

    def test_exit_status_is_the_programs(self):
        self.assertEqual(command(self.script, "run", "--", sys.executable, "-c", "raise SystemExit(7)").returncode, 7)


class WithoutCommand(unittest.TestCase):
    def test_missing_command_is_named(self):
        code = "import pathlib, sys; from largesse import __main__ as m; m.COMMAND = pathlib.Path('/nowhere'); m.main()"
        done = command(sys.executable, "-c", code)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not contain the command: install the wheel", done.stderr)

    def test_command_of_another_machine_is_named(self):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp"), f"largesse-no-command-{os.getpid()}")
        path.write_bytes(b"\x7fELF" + bytes(60))
        path.chmod(0o755)
        try:
            code = (
                f"import pathlib; from largesse import __main__ as m; m.COMMAND = pathlib.Path({str(path)!r}); m.main()"
            )
            done = command(sys.executable, "-c", code)
        finally:
            path.unlink()
        self.assertEqual(done.returncode, 1)
        self.assertIn("is the wheel one for", done.stderr)


if __name__ == "__main__":
    unittest.main()
