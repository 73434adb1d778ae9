"""Every example of the docstrings and of the guide runs."""

import pathlib
import re
import unittest

import largesse
from support import HAS_NUMPY, PRELOADED, environment, python

PACKAGE = pathlib.Path(largesse.__file__).parent
GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/python.md"


class Examples(unittest.TestCase):
    @unittest.skipUnless(
        HAS_NUMPY and not PRELOADED, "the examples are of a session with NumPy that was started as usual"
    )
    def test_docstrings(self):
        # Each module in a Python of its own, as far memory is chosen once.
        for path in sorted(PACKAGE.glob("*.py")):
            name = "largesse" if path.stem == "__init__" else f"largesse.{path.stem}"
            if path.stem != "__main__":
                with self.subTest(name):
                    said = python(
                        f"import doctest, importlib; print(doctest.testmod(importlib.import_module({name!r})))"
                    )
                    self.assertIn("TestResults(failed=0, attempted=", said)

    def test_every_public_function_has_an_example(self):
        for name in largesse.__all__:
            public = getattr(largesse, name)
            if name.islower():
                self.assertIn(">>> ", public.__doc__ or "", name)

    @unittest.skipUnless(HAS_NUMPY and GUIDE.exists(), "no NumPy, or not in a checkout")
    def test_guide(self):
        programs = re.findall(r"(?ms)^```python\n(.*?)^```", GUIDE.read_text())
        self.assertGreater(len(programs), 3)
        for program in programs:
            for preload in ("", largesse.status().library):
                if preload and "far_memory(" in program:
                    continue  # chosen by `largesse run` there
                self.assertTrue(python(program, env=environment(preload=preload)), program)


if __name__ == "__main__":
    unittest.main()
