#!/usr/bin/env python3
"""Compares every sequence function of Largesse's Lisp with EusLisp's, on every type of sequence.

usage: sequences.py [--rounds N] [--size N] [--only FUNCTION] [--csv FILE | --quick]

Both systems run sequences.l in turns. Prints the median of the ratios of their times for each function and type, and
exits with 1 if Largesse takes more than 1.2 times as long somewhere. `--csv docs/results/data/lisp.csv` appends the
ratios as the table `sequences`; that needs a checkout without changes, whose commit the rows name. `--quick` takes one
round of short sequences, prints the rows, and exits with 0.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

import figures

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(__file__).with_suffix(".l")
SLOWEST = 1.2
TYPES = ["cons", "string", "vector", "float-vector", "integer-vector", "bit-vector", "coordinates"]


def times(command, settings):
    """Nanoseconds of each (function, type), without those that the system refuses."""
    environment = dict(os.environ, EUSDIR=os.environ.get("EUSDIR", "/usr/share/euslisp"), **settings)
    run = subprocess.run(command + [str(PROGRAM)], env=environment, capture_output=True, text=True, timeout=600)
    rows = (line.split() for line in run.stdout.splitlines())
    return {(row[0], row[1]): int(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}


def measured(lisp, rounds, settings):
    """The ratio Largesse / EusLisp of each case in each round."""
    ratios = {}
    for _ in range(rounds):
        theirs, ours = times(["eusgl"], settings), times([lisp], settings)
        for case in (case for case in ours if case in theirs):
            ratios.setdefault(case, []).append(max(ours[case], 1) / max(theirs[case], 1))
    return ratios


def table(ratios):
    functions = list(dict.fromkeys(function for function, _ in ratios))
    width = max(map(len, functions))
    print(" " * width, *(f"{kind:>14}" for kind in TYPES))
    for function in functions:
        cells = [ratios.get((function, kind)) for kind in TYPES]
        print(f"{function:<{width}}", *(f"{statistics.median(cell):>14.2f}" if cell else " " * 14 for cell in cells))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--size", type=int, default=10000)
    options.add_argument("--time", type=int, default=20)
    options.add_argument("--only")
    group = options.add_mutually_exclusive_group()
    group.add_argument("--csv", type=pathlib.Path)
    group.add_argument("--quick", action="store_true")
    given = options.parse_args()
    commit = figures.commit() if given.csv else None
    if given.quick:
        given.rounds, given.size, given.time = 1, 100, 1
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    settings = {"SIZE": str(given.size), "TIME": str(given.time)} | ({"ONLY": given.only} if given.only else {})
    ratios = measured(str(target / "release/largesse-lisp"), given.rounds, settings)
    if not ratios:
        sys.exit("sequences.py: no times; are eusgl and largesse-lisp there?")
    table(ratios)
    if given.csv:
        figures.append(given.csv, "sequences", ratios, commit)
    if given.quick:
        figures.show("sequences", ratios)
        return 0
    slow = {case: statistics.median(values) for case, values in ratios.items() if statistics.median(values) > SLOWEST}
    for (function, kind), ratio in sorted(slow.items(), key=lambda it: -it[1]):
        print(f"slower: {function} of {kind}: {ratio:.2f}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
