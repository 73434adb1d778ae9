"""The wheel as a file: its contents, and machines for which it is not. WHEEL names it."""

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

WHEEL = os.environ.get("WHEEL", "")


@unittest.skipUnless(WHEEL, "WHEEL names no wheel")
class Wheel(unittest.TestCase):
    def test_every_file_has_its_hash(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            record = next(name for name in names if name.endswith(".dist-info/RECORD"))
            rows = list(csv.reader(io.TextIOWrapper(wheel.open(record))))
            self.assertEqual(sorted(row[0] for row in rows), sorted(names))
            for name, digest, size in rows:
                data = wheel.read(name)
                if name != record:
                    hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, size), (f"sha256={hashed}", str(len(data))), name)

    def test_command_library_and_licences_are_inside(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            entries = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
        self.assertEqual(entries["largesse/bin/largesse"] & 0o777, 0o755)
        for name in ("largesse/lib/liblargesse.so", "largesse/lib/liblargesse_pin.so", "largesse/py.typed"):
            self.assertIn(name, entries)
        for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
            self.assertTrue(any(name.endswith(f"licenses/{licence}") for name in entries))

    def test_pip_refuses_the_wheel_of_another_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.basename(WHEEL)
            for wrong in (
                name.replace("x86_64", "riscv64").replace("aarch64", "riscv64"),
                # A C library that is newer than any.
                name.replace("manylinux_2_", "manylinux_9_"),
            ):
                path = shutil.copy(WHEEL, os.path.join(folder, wrong))
                words = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", folder, path]
                done = subprocess.run(words, capture_output=True, text=True, timeout=300)
                if "No module named pip" in done.stderr:
                    self.skipTest("no pip")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("is not a supported wheel on this platform", done.stderr)


if __name__ == "__main__":
    unittest.main()
