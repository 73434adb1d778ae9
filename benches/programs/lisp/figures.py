"""Writes ratios of times as rows of a CSV file in the form of docs/results/data/lisp.csv."""
import csv
import datetime
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def rows(table, ratios, command, commit):
    """A row for each (program, setting) and its ratios Largesse / EusLisp, one a round."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    origin = {"command": command, "commit": commit, "date": datetime.date.today().isoformat(),
              "machine": f"{os.cpu_count()} × {model}, Linux {platform.release()}"}
    for (program, setting), values in ratios.items():
        yield {"subject": "lisp", "table": table, "program": program, "threads": 1, "setting": setting,
               "metric": "time divided by EusLisp's", "unit": "", "runs": len(values),
               "median": f"{statistics.median(values):.2f}",
               "spread": f"{min(values):.2f}–{max(values):.2f}" if len(values) > 1 else "–"} | origin


def commit():
    """The commit of a checkout without changes, except those of docs/results by an earlier measurement."""
    git = ["git", "-C", str(ROOT)]
    changes = git + ["status", "--porcelain", "--", ".", ":!docs/results"]
    if subprocess.run(changes, capture_output=True, text=True).stdout:
        sys.exit(f"{sys.argv[0]}: the checkout has changes, so that no commit would name them")
    return subprocess.run(git + ["rev-parse", "--short=8", "HEAD"], capture_output=True, text=True).stdout.strip()


def command():
    """The command of this measurement."""
    return " ".join([os.path.relpath(sys.argv[0], ROOT)] + sys.argv[1:])


def append(path, table, ratios, measured):
    """Appends the rows to a file that has a line of columns; `measured` is the commit."""
    found = list(rows(table, ratios, command(), measured))
    with path.open(newline="") as file:
        columns = next(csv.reader(file))
    with path.open("a", newline="") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerows(found)
    print(f"{path}: {len(found)} rows of the table {table} were added. If it had rows before, remove those or select by "
          "date in lisp.toml; then run python3 ci/results.py")


def show(table, ratios):
    """Prints the rows instead."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(row.values() for row in rows(table, ratios, command(), "-"))
