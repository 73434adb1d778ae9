#!/usr/bin/env python3
"""Writes the tables of docs/results/*.md from the measurements in docs/results/data/*.csv.

usage: results.py [--check]
       results.py add RESULT.json --subject NAME [--table NAME] [--command TEXT]

Without arguments, the lines between `<!-- table: FILE.csv VIEW -->` and `<!-- end -->` are replaced. `--check` changes
nothing, and exits with 1 if a page is not up to date or a commit in the CSV files is not in the history. `add`
appends what `largesse bench r|far|gc|kernels --json` wrote to data/NAME.csv. docs/results/README.md describes the
columns and the views.
"""
import argparse, csv, datetime, json, pathlib, re, subprocess, sys, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/results"
DATA = PAGES / "data"
COLUMNS = "subject,table,case,setting,metric,unit,runs,median,spread,command,commit,machine,date".split(",")
TABLE = re.compile(r"(<!-- table: (\S+\.csv) (\S+) -->\n).*?(<!-- end -->)", re.S)


def measurements(path):
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            sys.exit(f"{path}: the columns are {reader.fieldnames}, not {COLUMNS}")
        rows = list(reader)
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            sys.exit(f"{path}:{number}: a row has {len(COLUMNS)} cells")
        row["date"] and datetime.date.fromisoformat(row["date"])
    return rows


def as_list(value):
    return value if isinstance(value, list) else [value]


def cell(row, view):
    """The median with its spread: `± 12 %` of the median, or the range in brackets."""
    text = row["median"] + (f" {row['unit']}" if view.get("units") else "")
    if row["spread"] and view.get("spread", True):
        text += f" ({row['spread']})" if "–" in row["spread"] else f" ± {row['spread']}"
    return text


def table(file, name):
    """One view as Markdown. Rows and columns are in the order of the view, then of the CSV file."""
    views = tomllib.loads((DATA / file).with_suffix(".toml").read_text())
    if name not in views:
        sys.exit(f"{(DATA / file).with_suffix('.toml')} has no view [{name}]")
    view = views[name]
    rows = [r for r in measurements(DATA / file) if all(r[k] in as_list(v) for k, v in view["where"].items())]
    if not rows:
        sys.exit(f"{file} {name}: no measurement matches {view['where']}")
    left, top = as_list(view["rows"]), as_list(view["columns"])
    heads = [tuple(as_list(head)) for head in view.get("order", [])]
    cells, lines = {}, {}
    for row in rows:
        line, head = tuple(row[c] for c in left), tuple(row[c] for c in top)
        if head not in heads:
            if "order" in view:
                continue
            heads.append(head)
        if (line, head) in cells:
            sys.exit(f"{file} {name}: two measurements of {line} and {head}")
        cells[line, head] = cell(row, view)
        lines[line] = None
    titles = view.get("corner", [""] * len(left))
    out = [as_list(titles) + [", ".join(filter(None, head)) for head in heads], ["---"] * (len(left) + len(heads))]
    out += [list(line) + [cells.get((line, head), "") for head in heads] for line in lines]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in out)


def pages(check):
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        old = page.read_text()
        new = TABLE.sub(lambda m: m[1] + "\n" + table(m[2], m[3]) + "\n" + m[4], old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            check or page.write_text(new)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not up to date, run python3 ci/results.py")
    for page in stale:
        print(f"{page} was updated: commit it")


def commits():
    """Every commit that is named in a CSV file is in the history. A shallow clone is not asked."""
    git = ["git", "-C", str(ROOT)]
    shallow = subprocess.run(git + ["rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return
    named = {row["commit"] for path in DATA.glob("*.csv") for row in measurements(path)} - {""}
    missing = [c for c in sorted(named) if subprocess.run(git + ["cat-file", "-e", c + "^{commit}"], capture_output=True).returncode]
    if missing:
        sys.exit(f"docs/results/data: not in the history: {', '.join(missing)}")


def number(value):
    return value if isinstance(value, str) else f"{value:.4g}"


def from_json(lines):
    """The measurements in the output of `largesse bench … --json`, as (case, setting, metric, unit, runs, median, spread)."""
    for it in lines:
        kind, spread = it["kind"], f"{100 * it['spread']:.0f} %" if it.get("spread") is not None else ""
        runs = it.get("runs", "")
        if kind == "line" and it.get("answer") == "right":  # bench r
            case = f"{it['bench']} {it['line']}"
            yield case, it["setting"], "median", it["unit"], runs, it["median"], spread
            if it["ratio"] is not None:
                yield case, it["setting"], "ratio to stock", "", runs, it["ratio"], spread
        elif kind == "stock" and it["stock"]:  # bench far
            stock = it["stock"]
            yield it["bench"], "all local", "time", "s", stock["runs"], stock["median"], f"{100 * stock['spread']:.0f} %"
        elif kind == "cell" and "page_size" in it:  # bench far
            case, size = f"{it['bench']} {it['local_percent']} %", it["page_size"]
            if it["answer"] == "stopped":
                yield case, size, "time to all local", "", "", f"over {number(it['above'])}", ""
            elif it["answer"] == "right":
                yield case, size, "time to all local", "", runs, it["ratio"], spread
        elif kind == "cell" and "threads" in it and it["answer"] == "right":  # bench gc
            case = f"{it['bench']}, {it['threads']} thread" + "s" * (it["threads"] != 1)
            yield case, it["setting"], "time", "s", runs, it["median"], spread
            yield case, it["setting"], "gain", "", runs, it["gain"], f"{100 * it['gain_spread']:.0f} %"
            if it["gc_share"] is not None:
                yield case, it["setting"], "share of collections", "%", runs, 100 * it["gc_share"], ""
            if it.get("to_reference") is not None:
                yield case, it["setting"], "time to reference", "", runs, it["to_reference"], ""
        elif kind == "line" and it["bench"] == "kernels":
            case = f"{it['kernel']}, n = {it['n']}, {it['level']}, {it['shift']} bytes past a cache line"
            yield case, it["who"], "rate of the fastest turn", "GFlop/s", "", it["gflops"], spread
            if it["per_cent"] is not None:
                yield case, it["who"], "share of the level's limit", "%", "", it["per_cent"], ""


def machine_line(machine):
    return f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}"


def add(args):
    lines = [json.loads(line) for line in args.result.read_text().splitlines() if line.startswith("{")]
    found = [it["machine"] for it in lines if it["kind"] == "machine"]
    if not found:
        sys.exit(f"{args.result}: no machine line: write the file with largesse bench … --json")
    where, commit, date = machine_line(found[0]), found[0]["commit"] or "", found[0]["date"][:10]
    if commit.endswith("-dirty"):
        sys.exit(f"{args.result}: the checkout had changes that are in no commit: commit them and measure again")
    path = DATA / f"{args.subject}.csv"
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        count = 0
        for count, (case, setting, metric, unit, runs, median, spread) in enumerate(from_json(lines), 1):
            row = [args.subject, args.table, case, setting, metric, unit, runs, number(median), spread]
            writer.writerow(row + [args.command, commit, where, date])
    print(f"{path.relative_to(ROOT)}: {count} rows were added; add a view to {path.stem}.toml to show them")


def main():
    if sys.argv[1:2] == ["add"]:
        parser = argparse.ArgumentParser(prog="results.py add")
        parser.add_argument("result", type=pathlib.Path)
        parser.add_argument("--subject", required=True)
        parser.add_argument("--table", default="")
        parser.add_argument("--command", default="")
        add(parser.parse_args(sys.argv[2:]))
    elif sys.argv[1:] in ([], ["--check"]):
        pages(check=bool(sys.argv[1:]))
        commits()
    else:
        sys.exit(__doc__)


main()
