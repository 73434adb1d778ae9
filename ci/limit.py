#!/usr/bin/env python3
"""Measures `largesse run --limit`, and writes docs/results/data/limit.csv. Needs root, for control groups.

usage: limit.py half [--only NAME,...] [--seconds N] [--peers swap,zram] [--csv FILE] [--log FOLDER]
       limit.py local [--only NAME,...] [--seconds N] [--csv FILE] [--log FOLDER]
       limit.py cost [--only NAME,...] [--pairs N] [--csv FILE]
       limit.py change-over [--runs N] [--csv FILE]

`half` runs each program of benches/programs/limit/programs.toml three times: alone, in a control group of half its peak
without swap, and there under `largesse run --limit auto`. It says how each run ended, whether the output was the same,
how many processes the kernel killed, and the group's peak. It takes half an hour. With `--peers` each program also runs
in such groups with the kernel's swap to a new file in /var/tmp and to zram, which are off again afterwards. A run ends
after twice the time under `--limit auto`, or after `--seconds` if the output was not the same there. This takes another
half hour.

`local` runs programs whose memory comes from mappings of their own or from small blocks, alone and with `--local` of
half their peak. It says how each ended, the most memory that was resident, and how much of it was not far memory. It
takes ten minutes.

`cost` runs four programs that fit under a limit of 8 GiB, in turns with runs without a limit, and says by how much they
are slower, in elapsed and in processor time, and how many bytes more they need. It takes 15 minutes and a machine
without other work.

`change-over` says how long blocks cannot be allocated while 0.9 GiB and 3.6 GiB of them become far. It takes a minute.

Build first: cargo build --release -p largesse-cli && cargo build --profile preload -p largesse-preload -p largesse-pin
"""
import argparse, contextlib, csv, datetime, json, os, pathlib, platform, re, shlex, shutil, statistics, subprocess, sys
import tempfile, time
import tomllib

from peers import Ended, Peers

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "benches/programs/limit"
GROUP = ROOT / "docs/examples/in-cgroup.sh"
LARGESSE = ROOT / "target/release/largesse"
os.environ.setdefault("LARGESSE_LIBRARY", str(ROOT / "target/preload/liblargesse.so"))
PYTHON = pathlib.Path("/var/tmp/largesse-limit-python")
COLUMNS = "subject,table,program,setting,metric,unit,runs,median,spread,command,commit,machine,date".split(",")
# Programs whose time hardly varies.
STEADY = ["R: vectors", "NumPy", "C: radix sort", "C: stencil in two threads"]
TIMES = ["time", "processor time"]
MOST_MIB = 16384
LAST_LINES = re.compile(r"^limit \d+ MiB, at most in use (\d+) MiB: programs (\d+) MiB, page cache \d+ MiB$", re.M)


def python_with(packages):
    """An interpreter with the packages, which are installed once."""
    interpreter = PYTHON / "bin/python"
    if not (PYTHON / "done").exists():
        shutil.rmtree(PYTHON, ignore_errors=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", PYTHON], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *packages], check=True)
        (PYTHON / "done").touch()
    return interpreter


class Programs:
    """The programs of the table, built."""

    def __init__(self, built, only, kind):
        table = tomllib.loads((HERE / "programs.toml").read_text())
        self.names = {"python": python_with(table["python-packages"]), "built": built, "here": HERE}
        self.all = []
        for program in table["program"]:
            missing = [need for need in program.get("needs", []) if not shutil.which(need)]
            is_wanted = not only or program["name"] in only
            if not is_wanted or kind not in program.get("tables", ["half", "cost"]):
                continue
            if missing:
                print(f"{program['name']}: skipped, {' and '.join(missing)} not installed", flush=True)
                continue
            if "build" in program:
                subprocess.run(self.words(program["build"]), check=True)
            self.all.append((program["name"], self.words(program["command"])))

    def words(self, words):
        return [word.format(**self.names) for word in words]


class Run(Ended):
    """One run in a control group, whose helper script prints what the group used behind the program's output."""

    def __init__(self, mib, words, seconds, log):
        began = time.monotonic()
        group = [GROUP, str(mib), "timeout", "--kill-after=5", str(seconds), *words]
        with log.open("w") as errors:
            ran = subprocess.run([str(word) for word in group], stdout=subprocess.PIPE, stderr=errors, text=True)
        took = time.monotonic() - began
        last = LAST_LINES.search(ran.stdout)
        if not last:
            sys.exit(f"{' '.join(words)}: no control group: {log.read_text()}{ran.stdout}")
        output, rest = ran.stdout[: last.start()], ran.stdout[last.start() :]
        self.peak, self.programs = int(last[1]), int(last[2])
        # `timeout` has stopped it.
        status = None if ran.returncode in (124, 137) else ran.returncode
        super().__init__(took, status, output, int(re.search(r"killed by the kernel: (\d+)", rest)[1]))


def how_ended(ran, alone):
    """How a program ended whose output is that of the run `alone` if all went well."""
    if ran.status == 0 and ran.output == alone.output:
        return "same output"
    # Of the processes of a pipeline, one can be killed while the last one ends with 0.
    if ran.killed:
        return "killed"
    if ran.status is None:
        return "too slow"
    return f"status {ran.status}" if ran.status else "other output"


def to_alone(ran, alone):
    """The time of a run divided by that of the program alone; a lower bound if it was stopped."""
    ratio, ended = f"{ran.seconds / alone.seconds:.2g}", how_ended(ran, alone)
    return {"same output": ratio, "too slow": f"over {ratio}"}.get(ended, ended)


class Table:
    """Rows of the CSV file, which replace those of the same programs in the same table."""

    def __init__(self, name, path):
        self.path, self.rows = path, []
        changed = git("status", "--porcelain", "-uno", "--", ":!docs/results")
        if changed and path.is_relative_to(ROOT):
            sys.exit("the checkout has changes that are in no commit: commit them, or give --csv with another file")
        # Files of this machine are no part of what was measured.
        words = sys.argv[1:]
        for option in ("--csv", "--log"):
            if option in words:
                del words[words.index(option) : words.index(option) + 2]
        self.always = {"subject": "limit", "table": name, "command": "ci/limit.py " + shlex.join(words)}
        self.always["commit"] = git("rev-parse", "--short=7", "HEAD")
        self.always |= {"machine": machine(), "date": datetime.date.today().isoformat()}

    def add(self, program, setting, metric, unit, values, digits=4):
        median, spread = values[0], "–"
        if len(values) > 1:
            median = statistics.median(values)
            spread = f"{min(values):.{digits}g}–{max(values):.{digits}g}"
        text = median if isinstance(median, str) else f"{median:.{digits}g}"
        row = {"program": program, "setting": setting, "metric": metric, "unit": unit, "runs": len(values)}
        self.rows.append(row | {"median": text, "spread": spread} | self.always)

    def write(self):
        before = []
        if self.path.exists():
            with self.path.open(newline="") as file:
                before = list(csv.DictReader(file))
        new = {(row["table"], row["program"], row["setting"]) for row in self.rows}
        kept = [row for row in before if (row["table"], row["program"], row["setting"]) not in new]
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept + self.rows)


def git(*words):
    ran = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def machine():
    processor = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    processor = processor[1] if processor else platform.machine()
    return f"{os.cpu_count()} CPUs, {processor}, {gib:.1f} GiB, Linux {platform.release()}"


def run_alone(args, programs, logs):
    """Runs each program alone. Yields those that end well: name, words, the run, and a function that names log files."""
    logs.mkdir(parents=True, exist_ok=True)
    for number, (name, words) in enumerate(programs.all):
        file = lambda what: logs / f"{number:02} {name.replace(':', '').replace(' ', '-')} {what}.log"
        alone = Run(MOST_MIB, words, args.seconds, file("alone"))
        if alone.status == 0 and alone.output.strip():
            yield name, words, alone, file
        else:
            print(f"{name}: ends with {alone.status} without any limit: {file('alone').read_text()}", flush=True)


def half(args, programs, folder):
    table = Table("half", args.csv)
    logs, good = args.log or folder, 0
    with Peers(args.peers, folder) if args.peers else contextlib.nullcontext() as peers:
        for name, words, alone, file in run_alone(args, programs, logs):
            limit, report = alone.programs // 2, folder / "report.json"
            table.add(name, "alone", "peak", "MiB", [alone.programs])
            table.add(name, "alone", "time", "s", [alone.seconds], 3)
            table.add(name, "half", "limit", "MiB", [limit])
            limited = [str(LARGESSE), "run", "--limit", "auto", "--report", str(report), "--", *words]
            ends = {}
            for setting, command in (("without Largesse", words), ("--limit auto", limited)):
                ran = Run(limit, command, args.seconds, file(setting))
                ends[setting] = how_ended(ran, alone)
                if ends[setting] == "other output":
                    file(f"output {setting}").write_text(ran.output)
                table.add(name, setting, "ended", "", [ends[setting]])
                table.add(name, setting, "oom_kill", "", [ran.killed])
                table.add(name, setting, "peak of the group", "MiB", [ran.peak])
                table.add(name, setting, "time to alone", "", [to_alone(ran, alone)])
            done = ends["--limit auto"] == "same output"
            good += done
            print(f"{name}: peak {alone.programs} MiB, limit {limit} MiB, without: {ends['without Largesse']}, "
                  f"--limit auto: {ends['--limit auto']}, times alone: {to_alone(ran, alone)}", flush=True)
            if peers:
                # Alone again, since Run's helper script takes time, too.
                base = peers.run("none", 0, MOST_MIB, words, args.seconds, file("alone again"))
                most = min(args.seconds, 2 * ran.seconds) if done else args.seconds
                for kind in args.peers:
                    peer = peers.run(kind, 2 * alone.programs, limit, words, most, file(kind))
                    table.add(name, kind, "time to alone", "", [to_alone(peer, base)])
                    print(f"    {kind}: {to_alone(peer, base)}", flush=True)
            table.write()
    print(f"{good} of {len(programs.all)} programs end with the same output in half of their peak")


def local(args, programs, folder):
    table = Table("local", args.csv)
    report = folder / "report.json"
    for name, words, alone, file in run_alone(args, programs, args.log or folder):
        report.unlink(missing_ok=True)
        mib = alone.programs // 2
        far = [LARGESSE, "run", "--local", f"{mib}M", "--far", f"file:{folder}/far", "--report", report, "--", *words]
        ran = Run(MOST_MIB, far, args.seconds, file("--local"))
        counted = report.exists() and json.loads(report.read_text())["far"]
        uncovered = counted["uncovered_bytes"] >> 20 if counted else "unknown"
        table.add(name, "alone", "peak", "MiB", [alone.programs])
        for metric, value in (("local", mib), ("peak", ran.programs), ("not far", uncovered)):
            table.add(name, "--local", metric, "MiB", [value])
        table.add(name, "--local", "ended", "", [how_ended(ran, alone)])
        table.add(name, "--local", "time to alone", "", [to_alone(ran, alone)])
        print(f"{name}: peak {alone.programs} MiB, --local {mib}M: {how_ended(ran, alone)}, peak {ran.programs} MiB, "
              f"{uncovered} MiB not far, times alone: {to_alone(ran, alone)}", flush=True)
        table.write()


def timed(words):
    """Seconds, processor seconds, and the largest resident set in KiB of one run of a program."""
    began = time.monotonic()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, words))}: ended with {status}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def cost(args, programs, _folder):
    table = Table("cost", args.csv)
    plain, limit = [LARGESSE, "run", "--"], [LARGESSE, "run", "--limit", "8G", "--"]
    for name, words in programs.all:
        timed(plain + words)  # what the page cache lacks is read now
        ratios = {(setting, time): [] for setting in ("--limit 8G", "the same twice") for time in TIMES}
        more = []
        for pair in range(args.pairs):
            # The first run of three is often slower, so each takes its turn there.
            turns = [(way + pair) % 3 for way in range(3)]
            ran = {turn: timed((plain, limit, plain)[turn] + words) for turn in turns}
            first, with_limit, again = (ran[turn] for turn in range(3))
            for (setting, time), values in ratios.items():
                of, at = (with_limit if setting.startswith("--limit") else again), TIMES.index(time)
                values.append(of[at] / first[at])
            more.append((with_limit[2] - first[2]) / 1024)
        for (setting, time), values in ratios.items():
            table.add(name, setting, f"{time} to without a limit", "", values, 4)
            print(f"{name}, {setting}: {time} to without a limit {statistics.median(values):.4f}", flush=True)
        table.add(name, "--limit 8G", "more memory", "MiB", more, 3)
        print(f"{name}: {statistics.median(more):.1f} MiB more", flush=True)
        table.write()


def change_over(args, _programs, folder):
    table = Table("change-over", args.csv)
    program, report = folder / "limited", folder / "report.json"
    subprocess.run(["gcc", "-O2", "-pthread", ROOT / "tests/programs/limited.c", "-o", program], check=True)
    for gib, data in ((1, 1400), (4, 5200)):
        times = []
        for _ in range(args.runs):
            words = [LARGESSE, "run", "--limit", f"{gib}G", "--report", report, "--", program, data, 16]
            timed(words)
            times.append(json.loads(report.read_text())["limit"]["change_over_ms"] / (0.9 * gib))
        table.add("C: blocks", f"--limit {gib}G", "change-over of a GiB", "ms", times, 3)
        print(f"--limit {gib}G: {statistics.median(times):.1f} ms a GiB", flush=True)
        table.write()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["half", "local", "cost", "change-over"])
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[], metavar="swap,zram")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--csv", type=pathlib.Path, default=ROOT / "docs/results/data/limit.csv")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("only root can make a control group: type sudo before the command")
    if not LARGESSE.exists():
        sys.exit("build first, as the head of this file says")
    if not set(args.peers) <= {"swap", "zram"}:
        sys.exit("--peers takes swap, zram or swap,zram")
    with tempfile.TemporaryDirectory(prefix="largesse-limit-", dir="/var/tmp") as folder:
        folder = pathlib.Path(folder)
        only = args.only or (STEADY if args.what == "cost" else [])
        programs = None if args.what == "change-over" else Programs(folder, only, args.what)
        {"half": half, "local": local, "cost": cost, "change-over": change_over}[args.what](args, programs, folder)


main()
