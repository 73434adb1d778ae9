"""The structures and functions of the module are those of largesse.h."""

import ctypes
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import largesse
from largesse import _abi, _library

HEADER = pathlib.Path(__file__).resolve().parents[2] / "preload/include/largesse.h"
MIRRORS = {
    "largesse_stats_t": _abi.Stats,
    "largesse_block_t": _abi.BlockInfo,
    "largesse_cpu_t": _abi.CpuInfo,
    "largesse_node_t": _abi.NodeInfo,
    "largesse_allocator_t": _abi.Allocator,
}


@unittest.skipUnless(HEADER.exists(), "the tests are not in a checkout")
class Interface(unittest.TestCase):
    def test_fields_lie_where_c_has_them(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        asked = [(name, mirror, field[0]) for name, mirror in MIRRORS.items() for field in mirror._fields_]
        lines = [
            f'printf("%zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
            for name, _, field in asked
        ]
        lines += [f'printf("%zu 0\\n", sizeof({name}));' for name in MIRRORS]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "fields.c")
            source.write_text(
                '#include <stdio.h>\n#include "largesse.h"\nint main(void) {\n' + "\n".join(lines) + "\n}\n"
            )
            subprocess.run([compiler, "-I", HEADER.parent, "-o", f"{folder}/fields", source], check=True)
            said = subprocess.run([f"{folder}/fields"], check=True, capture_output=True, text=True).stdout
        found = [tuple(map(int, line.split())) for line in said.splitlines()]
        want = [(getattr(mirror, field).offset, getattr(mirror, field).size) for _, mirror, field in asked]
        want += [(ctypes.sizeof(mirror), 0) for mirror in MIRRORS.values()]
        for question, one, other in zip([*asked, *MIRRORS], found, want):
            self.assertEqual(one, other, question)

    def test_number_of_the_interface_is_the_headers(self):
        self.assertIn(f"#define LARGESSE_ABI {_abi.MAJOR}\n", HEADER.read_text())

    def test_every_function_is_in_the_library(self):
        functions = _library.library()
        for name in _abi.FUNCTIONS:
            getattr(functions, name)

    def test_missing_function_is_an_error_of_an_old_library(self):
        loaded = {"largesse_version": lambda: 2 << 16 | 0}

        class Old:
            def __getitem__(self, name):
                try:
                    return loaded[name]
                except KeyError:
                    raise AttributeError(name) from None

        with self.assertRaisesRegex(largesse.Error, "interface 2.0, which is too old"):
            _library.Functions(Old()).inspect


if __name__ == "__main__":
    unittest.main()
