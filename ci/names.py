#!/usr/bin/env python3
"""Finds names of types (struct, enum, trait, union) that occur more than twice in the workspace.

One word should mean one thing. Names that occur once a module by convention are exempt. Exits with 1 if there are any.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 2
# `Error` and `Result`: one a module, as the Rust API guidelines have it. `Args`: one a subcommand.
EXEMPT = {"Error", "Args", "Result"}
TYPE = re.compile(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|trait|union) ([A-Z]\w*)")


def main():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = collections.defaultdict(list)
    for name in filter(None, names.split("\0")):
        if not (ROOT / name).is_file():
            continue
        for match in TYPE.finditer((ROOT / name).read_text()):
            files[match[1]].append(name)
    often = {name: where for name, where in files.items() if len(where) > MOST and name not in EXEMPT}
    for name, where in sorted(often.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(where)} {name}: {' '.join(where)}")
    if not often:
        print(f"names: none of {len(files)} type names occurs more than {MOST} times")
    sys.exit(bool(often))


main()
