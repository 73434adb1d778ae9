#!/usr/bin/env python3
"""Builds the wheel: the module, liblargesse.so and the command in one file, the same bytes from the same inputs.

usage: wheel.py FOLDER        with LIBRARY and COMMAND, or the files that `make` has built

The tag of the wheel is the oldest C library on which the programs in it run, which is read from them. As a build
backend (PEP 517) it lets `pip install fronts/python` work in a checkout where `make` was run.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Every system that the tag names has these (PEP 600).
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
OLDEST_PYTHON = "3.9"


def built():
    """Returns the programs and libraries, by their names in the wheel."""
    library = pathlib.Path(os.environ.get("LIBRARY") or ROOT / "target/preload/liblargesse.so")
    command = pathlib.Path(os.environ.get("COMMAND") or ROOT / "target/release/largesse")
    files = {
        "largesse/lib/liblargesse.so": library,
        "largesse/lib/liblargesse_pin.so": library.with_name("liblargesse_pin.so"),
        "largesse/bin/largesse": command,
    }
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        sys.exit(f"wheel.py: not built: {', '.join(missing)}: type make, or set LIBRARY and COMMAND")
    return files


def read(tool, *words):
    return subprocess.run([tool, *words], check=True, capture_output=True, text=True).stdout


def tag(files):
    """Returns the platform tag that the programs need."""
    newest, machines = (2, 17), set()
    for path in files:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-dW", path)))
        if needed - SYSTEM:
            sys.exit(f"wheel.py: {path} needs {', '.join(sorted(needed - SYSTEM))}, which not every system has")
        found = re.findall(r"GLIBC_(\d+)\.(\d+)", read("readelf", "-VW", path))
        newest = max(newest, *((int(major), int(minor)) for major, minor in found))
        machines.update(re.findall(r"Machine:\s+(.*)", read("readelf", "-hW", path)))
    names = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
    if len(machines) != 1:
        sys.exit(f"wheel.py: the files are for different machines: {', '.join(sorted(machines))}")
    return f"manylinux_{newest[0]}_{newest[1]}_{names[machines.pop()]}"


def version():
    text = (ROOT / "Cargo.toml").read_text()
    found = re.search(r'(?m)^version = "(.*)"', text)[1]
    module = re.search(r'(?m)^__version__ = "(.*)"', (HERE / "largesse/__init__.py").read_text())[1]
    if found != module:
        sys.exit(f"wheel.py: largesse/__init__.py has version {module}, Cargo.toml {found}")
    return found


def contents(platform, files, folder):
    """Returns what the wheel contains: names, bytes and whether they can be executed."""
    entries = {}
    for path in sorted((HERE / "largesse").glob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            entries[f"largesse/{path.name}"] = (path.read_bytes(), False)
    for name, path in files.items():
        stripped = pathlib.Path(folder) / path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, path], check=True)
        entries[name] = (stripped.read_bytes(), name.startswith("largesse/bin/"))
    info = f"largesse-{version()}.dist-info"
    entries[f"{info}/METADATA"] = (
        f"""Metadata-Version: 2.4
Name: largesse
Version: {version()}
Summary: Large pages, far memory and placement for NumPy arrays and numerical programs, without changing them
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Requires-Python: >={OLDEST_PYTHON}
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: Implementation :: CPython
Classifier: Typing :: Typed
Provides-Extra: numpy
Requires-Dist: numpy>=1.22; extra == "numpy"
""".encode(),
        False,
    )
    entries[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: largesse\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode(),
        False,
    )
    entries[f"{info}/entry_points.txt"] = (b"[console_scripts]\nlargesse = largesse.__main__:main\n", False)
    for path in sorted(ROOT.glob("LICENSE-*")):
        entries[f"{info}/licenses/{path.name}"] = (path.read_bytes(), False)
    # The bills of materials (PEP 770) that an installed tree has.
    bills = files["largesse/bin/largesse"].resolve().parent.parent / "share/doc/largesse"
    for path in files.values():
        bill = bills / f"{path.stem}.cdx.json"
        if bill.is_file():
            entries[f"{info}/sboms/{bill.name}"] = (bill.read_bytes(), False)
    lines = [f"{name},sha256={digest(data)},{len(data)}\n" for name, (data, _) in sorted(entries.items())]
    entries[f"{info}/RECORD"] = ("".join([*lines, f"{info}/RECORD,,\n"]).encode(), False)
    return entries


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(folder):
    """Writes the wheel to a folder, and returns its path."""
    files = built()
    platform = tag(files.values())
    # Time stamps of a zip file begin in 1980.
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or 0), 315532800))[:6]
    wheel = pathlib.Path(folder) / f"largesse-{version()}-py3-none-{platform}.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out,
    ):
        # RECORD comes last, as PEP 427 recommends.
        entries = contents(platform, files, scratch)
        for name in sorted(entries, key=lambda name: (name.endswith("/RECORD"), name)):
            data, executable = entries[name]
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            out.writestr(entry, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel for pip."""
    return write(wheel_directory).name


def build_sdist(sdist_directory, config_settings=None):
    """Refuses: the module is built from a checkout of Largesse, whose Rust sources it needs."""
    sys.exit("wheel.py: there is no source package of the module alone: build the wheel in a checkout of Largesse")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(write(sys.argv[1]))
