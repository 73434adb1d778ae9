"""Processes, interpreters and systems in which the module is imported."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import largesse
from largesse import _abi
from support import HAS_NUMPY, PRELOADED, environment, fresh, python

LIBRARY = largesse.status().library
SERVED = """
import numpy, largesse
largesse.enable()
print(largesse.where(numpy.ones(1_000_000)).kind)
"""


def try_to_enable(first=""):
    return f"""
        {first}
        import largesse
        status = largesse.status()
        print(status.support, status.why)
        try:
            largesse.enable()
        except largesse.Error as error:
            print("error:", error)
    """


@unittest.skipUnless(HAS_NUMPY, "no NumPy")
class Interpreters(unittest.TestCase):
    def test_order_of_imports_does_not_matter(self):
        for order in ("import numpy; import largesse", "import largesse; import numpy"):
            said = fresh(f"{order}; largesse.enable(); print(largesse.where(numpy.ones(1_000_000)).kind)")
            self.assertNotEqual(said, "other", order)

    def test_import_in_a_thread(self):
        said = fresh("""
            import threading
            def work():
                import largesse
                largesse.enable()
            thread = threading.Thread(target=work)
            thread.start(); thread.join()
            import largesse, numpy
            print(largesse.where(numpy.ones(1_000_000)).kind)
        """)
        self.assertNotEqual(said, "other")

    def test_other_ways_to_start(self):
        # -S leaves out the folder of installed packages, so that PYTHONPATH has to name it.
        for options in (["-S"], ["-I"], ["-O"], ["-X", "dev"]):
            folders = [path for path in sys.path if path]
            code = f"import sys; sys.path += {folders!r}\n{SERVED}"
            self.assertNotEqual(python(code, *options, env=environment(preload="")), "other", options)

    def test_venv_with_the_systems_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", folder], capture_output=True
            )
            if done.returncode:
                self.skipTest("no module venv")
            env = environment(preload="", PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
            self.assertNotEqual(python(SERVED, program=f"{folder}/bin/python", env=env), "other")

    def in_subinterpreter(self, before, after):
        """Returns what a subinterpreter says that imports the module, between two pieces of code of the main one."""
        with tempfile.TemporaryDirectory() as folder:
            inside = pathlib.Path(folder, "inside.py")
            inside.write_text("""
import largesse
try:
    status = largesse.status()
    print("served", status.support, status.enabled, status.hooked, flush=True)
except largesse.Error as error:
    print("error", error, flush=True)
""")
            code = f"""
                import sys
                {before}
                try:
                    import _xxsubinterpreters as interpreters
                except ImportError:
                    import _interpreters as interpreters
                number = interpreters.create()
                code = f"import sys; sys.path = {{sys.path!r}}; exec(open({str(inside)!r}).read())"
                said = interpreters.run_string(number, code)
                interpreters.destroy(number)
                {after}
                print(said, largesse.where(numpy.ones(1_000_000)).kind)
            """
            said = fresh(code, check=False)
        if not said:
            self.skipTest("this Python has no module for subinterpreters")
        self.assertRegex(said.splitlines()[-1], "^None (thp|hugetlb|small)$")
        return said.splitlines()[0]

    def test_subinterpreters_share_the_handler(self):
        said = self.in_subinterpreter("import numpy, largesse; largesse.enable()", "")
        self.assertRegex(said, "^served True True functions$|^error .*ctypes")

    def test_first_import_in_a_subinterpreter(self):
        # It loads the library, which the main interpreter finds later.
        said = self.in_subinterpreter("", "import numpy, largesse; largesse.enable()")
        self.assertRegex(said, "^served True False|^error .*ctypes")


@unittest.skipUnless(HAS_NUMPY, "no NumPy")
class Processes(unittest.TestCase):
    def run_pool(self, method):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "pool.py")
            script.write_text(f"""
import multiprocessing, numpy, largesse

def total(number):
    array = numpy.full(1_000_000, float(number))
    return float(array.sum()), largesse.where(array).kind

if __name__ == "__main__":
    largesse.enable()
    shared = numpy.ones(1_000_000)
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        results = pool.map(total, range(8))
    print([result[0] for result in results] == [1e6 * number for number in range(8)], results[0][1], shared.sum())
""")
            env = environment(preload="")
            done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split()

    def test_forked_workers_are_served(self):
        same, kind, shared = self.run_pool("fork")
        self.assertEqual((same, shared), ("True", "1000000.0"))
        self.assertNotEqual(kind, "other")

    def test_spawned_workers_start_without(self):
        # A new session, in which `enable` was not called.
        for method in ("spawn", "forkserver"):
            self.assertEqual(self.run_pool(method), ["True", "other", "1000000.0"], method)

    def test_programs_started_from_python_are_not_touched(self):
        said = fresh("""
            import subprocess, sys, numpy, largesse
            largesse.enable()
            a = numpy.ones(1_000_000)
            print(subprocess.check_output([sys.executable, "-S", "-c", "print(1)"], text=True), end="")
            print(a.sum())
        """)
        self.assertEqual(said, "1\n1000000.0")


class Refusals(unittest.TestCase):
    def test_other_allocators_keep_their_blocks(self):
        found = [
            path
            for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
            for path in (f"{folder}/libjemalloc.so.2", f"{folder}/libtcmalloc_minimal.so.4")
            if os.path.exists(path)
        ]
        if not found or not HAS_NUMPY:
            self.skipTest("no jemalloc or tcmalloc (apt install libjemalloc2), or no NumPy")
        for other in found:
            said = python(
                try_to_enable("import numpy; a = numpy.ones(1_000_000)") + "\n        print(a.sum())",
                env=environment(preload=other),
            )
            name = os.path.basename(other)
            self.assertIn(f"False {name} brings its own malloc, which serves every block", said)
            self.assertIn(f"error: large pages cannot be used here: {name} brings", said)
            self.assertTrue(said.endswith("1000000.0"))

    def test_library_preloaded_twice_is_one_library(self):
        said = python(
            """
            import largesse, os
            status = largesse.status()
            print(status.support, status.enabled, status.hooked, open("/proc/self/maps").read().count("r-xp"), end=" ")
            print(len({line.split()[-1] for line in open("/proc/self/maps") if "liblargesse.so" in line}))
        """,
            env=environment(preload=f"{LIBRARY}:{LIBRARY}"),
        )
        self.assertRegex(said, r"^True True preloaded \d+ 1$")

    def test_other_fronts_find_the_library(self):
        # As R's package looks for it, so that R in the same process loads no second copy.
        said = fresh("import ctypes, largesse; largesse.status(); print(ctypes.CDLL(None).largesse_version() >> 16)")
        self.assertEqual(said, str(_abi.MAJOR))

    def test_named_library_gives_way_to_the_preloaded_one(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(LIBRARY, folder)
            said = python(
                "import largesse; print(largesse.status().library)",
                env=environment(preload=LIBRARY, LARGESSE_LIBRARY=copy),
            )
            self.assertEqual(said, LIBRARY)

    def test_library_that_is_missing_is_named(self):
        said = fresh(try_to_enable("import os; os.environ['LARGESSE_LIBRARY'] = '/nowhere/liblargesse.so'"))
        self.assertIn("False there is no file /nowhere/liblargesse.so: set LARGESSE_LIBRARY", said)

    def test_marked_programs_run_without_the_library(self):
        said = fresh("""
            import os
            os.environ["LARGESSE_LIBRARY"] = "/nowhere"
            import largesse
            with largesse.tuned("core"):
                print(list(largesse.tuned("core", [1, 2])))
        """)
        self.assertEqual(said, "[1, 2]")

    def doctored(self, change):
        """Tries to enable with a copy of the library in which `change` was made."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "liblargesse.so")
            data = bytearray(pathlib.Path(LIBRARY).read_bytes())
            change(data)
            path.write_bytes(data)
            return fresh(try_to_enable(f"import os; os.environ['LARGESSE_LIBRARY'] = {str(path)!r}"))

    def test_library_of_another_machine_is_refused(self):
        def other_machine(data):
            data[18:20] = b"\xf3\x00"  # RISC-V

        self.assertIn("is not a library for this machine", self.doctored(other_machine))
        self.assertIn("install the wheel whose name ends in", self.doctored(other_machine))

    def test_library_for_a_newer_c_library_is_refused(self):
        def newer(data):
            at = data.index(b"\0GLIBC_2.") + len(b"\0GLIBC_")
            data[at : at + 1] = b"9"

        self.assertRegex(self.doctored(newer), "the C library of this system is too old .*GLIBC_9")

    def test_files_that_are_no_library_are_refused(self):
        self.assertIn("is not a library for this machine", self.doctored(lambda data: data.clear()))
        said = self.doctored(lambda data: data.__delitem__(slice(5000, None)))
        self.assertIn("is incomplete: install it again", said)
        other = fresh(
            try_to_enable("import os, ctypes.util; os.environ['LARGESSE_LIBRARY'] = __import__('_ctypes').__file__")
        )
        self.assertIn("is not Largesse's library", other)

    def test_wrong_settings_are_named(self):
        if not HAS_NUMPY:
            self.skipTest("no NumPy")
        said = python(try_to_enable(), env=environment(preload="", LARGESSE_PAGES="4K"))
        self.assertIn("LARGESSE_PAGES", said)
        self.assertIn("error: large pages cannot be used here", said)

    def test_other_systems_get_the_reason(self):
        for setting, words in [
            ("sys.platform = 'darwin'", "Linux only, and this is darwin"),
            ("sys.implementation.name = 'pypy'", "needs CPython, and this is pypy"),
            ("sys.modules['ctypes'] = None", "ctypes cannot be imported"),
        ]:
            said = fresh(f"""
                import sys, warnings
                {setting}
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    import largesse
                print([str(one.message) for one in caught if "largesse" in str(one.message)])
                one = __import__("array").array("d", [1])
                for call in ("enable()", "status().why", "sum(one)", "machine()", "cycles()", "where(one)"):
                    try:
                        print(call, eval("largesse." + call))
                    except largesse.Error as error:
                        print(call, error)
            """)
            self.assertEqual(said.count(words), 7, said)

    def test_home_that_cannot_be_written(self):
        if not HAS_NUMPY:
            self.skipTest("no NumPy")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, stat.S_IRUSR | stat.S_IXUSR)
            env = environment(preload="", HOME=folder, XDG_CACHE_HOME=folder)
            self.assertNotEqual(python(SERVED, env=env), "other")
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
