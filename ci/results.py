#!/usr/bin/env python3
"""Writes the tables of docs/results/*.md from the measurements in docs/results/data/*.csv.

usage: results.py [--check]
       results.py add RESULT.json --subject NAME --table NAME --command TEXT

Without arguments, the lines between `<!-- table: FILE.csv VIEW -->` and `<!-- end -->` are replaced. `--check` changes
nothing, and exits with 1 if a page is not up to date, a page has a table by hand, a CSV file lacks a required column or
cell, or a commit is not in the history. `add` appends what `largesse bench r|far|gc|kernels --json` wrote to
data/NAME.csv. docs/results/README.md describes the columns and the views.
"""
import argparse, csv, datetime, json, pathlib, re, subprocess, sys, tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/results"
DATA = PAGES / "data"
# A CSV file also has columns that identify the row: program, number of threads, size, setting …
REQUIRED = "subject,table,metric,unit,runs,median,spread,command,commit,machine,date".split(",")
FILLED = [column for column in REQUIRED if column != "unit"]
# A cell without a value: the page that was the source did not say, or there is nothing to say (a goal has no runs).
UNKNOWN, NONE, NO_COMMIT = "unknown", "–", "not in the history"
TABLE = re.compile(r"(<!-- table: (\S+\.csv) (\S+) -->\n).*?(<!-- end -->)", re.S)
# Pages whose tables are written by hand: the index, and experiments that are one sentence each.
BY_HAND = {"README.md", "far-experiments.md"}
HASH = re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7}\b")


def measurements(path):
    name = path.relative_to(ROOT)
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        lacking = [column for column in REQUIRED if column not in (reader.fieldnames or [])]
        if lacking:
            sys.exit(f"{name}: the columns {', '.join(lacking)} are missing")
        rows = list(reader)
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            sys.exit(f"{name}:{number}: a row has {len(reader.fieldnames)} cells")
        empty = [column for column in FILLED if not row[column]]
        if empty:
            sys.exit(f"{name}:{number}: no {', '.join(empty)}: write {UNKNOWN} if it is not known")
        if row["subject"] != path.stem:
            sys.exit(f"{name}:{number}: the subject is {row['subject']}")
        row["date"] in (UNKNOWN, NONE) or datetime.date.fromisoformat(row["date"])
    return rows


def as_list(value):
    return value if isinstance(value, list) else [value]


def cell(row, view):
    """The median with its spread: `± 12 %` of the median, the range in brackets, or `-6 %` or `+1 %` of the best run."""
    units, spread = view.get("units", []), row["spread"] if view.get("spread", True) else UNKNOWN
    text = row["median"] + (f" {row['unit']}" if row["unit"] and (units is True or row["unit"] in units) else "")
    if spread in (UNKNOWN, NONE):
        return text
    if row["median"] == UNKNOWN:
        return spread
    if spread.startswith(("median ", "worst ")):
        return f"{text} {spread.split(' ', 1)[1]}"
    return f"{text} ({spread})" if "–" in spread else f"{text} ± {spread}"


def matches(row, where):
    return all(row[column] in as_list(value) for column, value in where.items())


def table(file, name):
    """One view as Markdown. Rows and columns are in the order of the view, then of the CSV file."""
    views = tomllib.loads((DATA / file).with_suffix(".toml").read_text())
    if name not in views:
        sys.exit(f"{(DATA / file).with_suffix('.toml')} has no view [{name}]")
    view, all_rows = views[name], measurements(DATA / file)
    unused = [where for where in as_list(view["where"]) if not any(matches(row, where) for row in all_rows)]
    if unused:
        sys.exit(f"{file} {name}: no measurement matches {unused[0]}")
    rows = [row for row in all_rows if any(matches(row, where) for where in as_list(view["where"]))]
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
    titles = view.get("corner", [""] * len(left)) + view.get("heads", [", ".join(filter(None, head)) for head in heads])
    if len(titles) != len(left) + len(heads):
        sys.exit(f"{file} {name}: {len(titles)} headings of {len(left) + len(heads)} columns")
    out = [titles, ["---"] * len(titles)]
    out += [list(line) + [cells.get((line, head), "") for head in heads] for line in lines]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in out)


def pages(check):
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        old = page.read_text()
        if page.name not in BY_HAND and re.search(r"(?m)^\|", TABLE.sub("", old)):
            sys.exit(f"{page.relative_to(ROOT)}: a table outside of `<!-- table: … -->` and `<!-- end -->`")
        new = TABLE.sub(lambda m: m[1] + "\n" + table(m[2], m[3]) + "\n" + m[4], old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            check or page.write_text(new)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not up to date, run python3 ci/results.py")
    for page in stale:
        print(f"{page} was updated: commit it")


def commits():
    """Every commit that a CSV file or a page names is in the history. A shallow clone is not asked."""
    git = ["git", "-C", str(ROOT)]
    shallow = subprocess.run(git + ["rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return
    named = {row["commit"] for path in DATA.glob("*.csv") for row in measurements(path)} - {UNKNOWN, NONE, NO_COMMIT}
    named |= {found for page in PAGES.glob("*.md") for found in HASH.findall(page.read_text())}
    asked = "".join(f"{commit}^{{commit}}\n" for commit in sorted(named))
    answers = subprocess.run(git + ["cat-file", "--batch-check"], input=asked, capture_output=True, text=True).stdout
    missing = [line.split("^")[0] for line in answers.splitlines() if " commit " not in line]
    if missing:
        sys.exit(f"docs/results: not in the history: {', '.join(missing)}")


# Keys of the JSON output for the transfers of a cell of `bench far`: metric, unit, and factor.
MOVED = {
    "resident": ("resident share of the data", "%", 100),
    "bytes_read": ("read", "MiB", 2**-20),
    "bytes_written": ("written", "MiB", 2**-20),
    "bytes_each": ("bytes of a read", "KiB", 2**-10),
    "before_touch": ("pages filled without a fault", "%", 100),
    "to_least": ("read to the least", "", 1),
}


def number(value):
    return value if isinstance(value, str) else f"{value:.4g}"


def from_json(lines):
    """The measurements in the output of `largesse bench … --json`: columns that identify the row, metric, unit, runs,
    median and spread."""
    for it in lines:
        kind, spread = it["kind"], f"{100 * it['spread']:.0f} %" if it.get("spread") is not None else UNKNOWN
        runs, wrong = it.get("runs", UNKNOWN), it.get("answer", "right") != "right"
        if kind == "line" and "line" in it and not wrong:  # bench r
            row = {"program": it["bench"], "test": it["line"], "setting": it["setting"]}
            yield row, "time or memory", it["unit"], runs, it["median"], spread
            if it["ratio"] is not None:
                yield row, "ratio to stock", "", runs, it["ratio"], spread
        elif kind == "stock" and it["stock"]:  # bench far
            stock = it["stock"]
            row = {"case": it["bench"], "setting": "all local"}
            yield row, "time", "s", stock["runs"], stock["median"], f"{100 * stock['spread']:.0f} %"
        elif kind == "cell" and "local_percent" in it:  # bench far
            way = it.get("page_size") or it["peer"]
            row = {"case": f"{it['bench']} {it['local_percent']} %", "setting": way}
            if it["answer"] == "stopped":
                yield row, "time to all local", "", UNKNOWN, f"over {number(it['above'])}", NONE
            elif it["answer"] == "out of memory":
                yield row, "time to all local", "", UNKNOWN, "OOM", NONE
            elif not wrong:
                yield row, "time to all local", "", runs, it["ratio"], spread
            moved = row | {"setting": f"{way}, moved"}
            for name, (metric, unit, factor) in MOVED.items():
                if it.get(name) is not None:
                    yield moved, metric, unit, 1, factor * it[name], NONE
        elif kind == "device":  # bench far
            row = {"case": f"{it['case']}, {it['size'] >> 10} KiB, {it['in_flight']} in flight", "setting": "device"}
            yield row, "rate", "MB/s", 1, it["megabytes_per_second"], NONE
            yield row, "time of a transfer", "µs", 1, it["microseconds"], NONE
        elif kind == "cell" and "threads" in it and not wrong:  # bench gc
            row = {"program": it["bench"], "threads": it["threads"], "setting": it["setting"]}
            yield row, "time", "s", runs, it["median"], spread
            yield row, "gain", "", runs, it["gain"], f"{100 * it['gain_spread']:.0f} %"
            if it["gc_share"] is not None:
                yield row, "share of collections", "%", runs, 100 * it["gc_share"], UNKNOWN
            if it.get("to_reference") is not None:
                yield row, "time to the reference", "", runs, it["to_reference"], UNKNOWN
        elif kind == "line" and it["bench"] == "kernels":
            row = {column: it[column] for column in ("kernel", "n", "level", "shift")} | {"setting": it["who"]}
            yield row, "rate of the best run", "GFlop/s", runs, it["gflops"], f"median +{spread}"
            if it["per_cent"] is not None:
                yield row, "share of the limit", "%", runs, it["per_cent"], UNKNOWN


def machine_line(machine):
    return f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}"


def add(args):
    lines = [json.loads(line) for line in args.result.read_text().splitlines() if line.startswith("{")]
    found = [it["machine"] for it in lines if it["kind"] == "machine"]
    if not found:
        sys.exit(f"{args.result}: no machine line: write the file with largesse bench … --json")
    where, commit, date = machine_line(found[0]), found[0]["commit"] or "", found[0]["date"][:10]
    if commit.endswith("-dirty"):
        sys.exit(f"{args.result}: the checkout had changes that are in no commit: commit them and measure again")
    path = DATA / f"{args.subject}.csv"
    always = {"subject": args.subject, "table": args.table, "command": args.command, "commit": commit or UNKNOWN}
    always |= {"machine": where, "date": date}
    rows = []
    for identity, metric, unit, runs, median, spread in from_json(lines):
        figure = {"metric": metric, "unit": unit, "runs": runs, "median": number(median), "spread": spread}
        rows.append(identity | always | figure)
    if not rows:
        sys.exit(f"{args.result}: no measurement")
    identities = [column for column in dict.fromkeys(key for row in rows for key in row) if column not in REQUIRED]
    columns = REQUIRED[:2] + identities + REQUIRED[2:]
    if path.exists():
        with path.open(newline="") as file:
            columns = next(csv.reader(file))
    lacking = [column for column in identities if column not in columns]
    if lacking:
        sys.exit(f"{path.relative_to(ROOT)} has no column {', '.join(lacking)}: add it")
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        new and writer.writeheader()
        writer.writerows(rows)
    print(f"{path.relative_to(ROOT)}: {len(rows)} rows were added; add a view to {path.stem}.toml to show them")


def main():
    if sys.argv[1:2] == ["add"]:
        parser = argparse.ArgumentParser(prog="results.py add")
        parser.add_argument("result", type=pathlib.Path)
        parser.add_argument("--subject", required=True)
        parser.add_argument("--table", required=True)
        parser.add_argument("--command", required=True)
        add(parser.parse_args(sys.argv[2:]))
    elif sys.argv[1:] in ([], ["--check"]):
        pages(check=bool(sys.argv[1:]))
        commits()
    else:
        sys.exit(__doc__)


main()
