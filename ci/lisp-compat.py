#!/usr/bin/env python3
"""Runs EusLisp's own files on `largesse lisp` and on eusgl, and writes docs/lisp-compat.md.

usage: lisp-compat.py [SET ...]          all sets without an argument; the page is written only then

EUSLISP and JSKEUS name folders with the repositories; without them, the commits below are fetched into
target/lisp-compat. LARGESSE_LISP names the program [target/release/largesse-lisp]. The files are run where they are and
never copied; a library for one of EusLisp's tests is built beside it. ci/lisp-compat/reasons.txt says why a file does not
pass. Exits with 1 if a set is missing, and with 2 if a repository, eusgl or largesse-lisp is.
"""
import collections, os, pathlib, re, shutil, subprocess, sys, tempfile
from finished import finished

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/lisp-compat.md"
CLONES = ROOT / "target/lisp-compat"
URL = "https://github.com/euslisp/"
# The commits that the page is about; a folder that is given may have another one, which the page then names.
COMMITS = {"EusLisp": "dc0d268b43676b8c423a272060b8d885d4388971", "jskeus": "bbdff6424b909a9077eceddee0e5466e5cb2892d"}
LIMIT = 90  # seconds for one file
Outcome = collections.namedtuple("Outcome", "loads passes note")


def fail(message):
    print(f"lisp-compat: {message}", file=sys.stderr)
    sys.exit(2)


def repository(variable, name):
    """Returns the folder of a repository and its commit."""
    folder = pathlib.Path(os.environ.get(variable) or CLONES / name)
    if not folder.is_dir() and variable not in os.environ:
        git = ["git", "-C", str(folder)]
        folder.mkdir(parents=True)
        for words in (["init", "-q"], ["fetch", "-q", "--depth", "1", URL + name, COMMITS[name]],
                      ["checkout", "-q", "FETCH_HEAD"]):
            if subprocess.run(git + words).returncode != 0:
                shutil.rmtree(folder)
                fail(f"{URL}{name} cannot be fetched: set {variable} to a folder with it")
    commit = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True)
    if commit.returncode != 0:
        fail(f"{folder} is no git repository; {variable} names it")
    return folder.resolve(), commit.stdout.strip()


def run(words, folder, euslisp):
    """Returns exit status and output; the status is None after the time limit. Tests start themselves as `eusg`."""
    with tempfile.TemporaryDirectory() as programs:
        os.symlink(words[0], pathlib.Path(programs) / "eusg")
        return run_with(words, folder, dict(
            os.environ, EUSDIR=str(euslisp) + "/", TERM="dumb", TZ="UTC", DISPLAY="",
            PATH=programs + os.pathsep + os.environ["PATH"]))


def run_with(words, folder, environment):
    """As `run`, with this environment."""
    status, printed = finished(words, folder, environment, LIMIT)
    return status, printed.decode(errors="replace")


def ended(status):
    return "time limit" if status is None else f"signal {-status}" if status < 0 else f"exit {status}"


def first_error(text):
    """Returns the first line that says what went wrong."""
    for line in re.sub("\x1b\\[[0-9;]*m", "", text).splitlines():
        found = re.search(r"(FAILED .*|[a-z-]+-(?:error|function|variable|overflow|memory): .*|unittest-error: .*|ERROR th=.*)", line)
        if found:
            return re.sub(r" in \(.*", "", found.group(1))[:90].replace("|", "/")
    return ""


# Files of tests: their assertions print a line when they fail, and the results come last.

def failures(text):
    """Returns how often each assertion failed, without package prefixes and addresses."""
    lines = re.findall(r"\[ERROR\] test (.*?) failed \.\.\.", text)
    return collections.Counter(re.sub(r"[a-z]+::?(?=[a-z*])|#[xX][0-9a-f]+", "", line) for line in lines)


def run_test(program, file, euslisp):
    status, text = run([program, file.name], file.parent, euslisp)
    reached = "ALL RESULTS" in text and status in (0, 1) and "unittest-error" not in text
    return reached, failures(text), ended(status), first_error(text)


def compare_test(ours, theirs):
    """An assertion that fails on both is none of ours. Theirs is no measure unless it reached the end."""
    (reached, failed, how, why), (their_end, their_failed, their_how, _) = ours, theirs
    more = sum((failed - their_failed).values())
    note = [] if reached else [why or how]
    if more:
        note.append(f"{more} assertions fail" + (" that pass in eusgl" if their_end else ""))
    theirs = Outcome(their_end, their_end and not their_failed, "" if their_end else their_how)
    return Outcome(reached, reached and more == 0, "; ".join(note)), theirs


# Files that are loaded: a driver loads the file, then evaluates a form and prints its value.

DRIVER = """(lisp::install-error-handler
  #'(lambda (&rest all) (format t "~%FAILED ~a ~a~%" (cadr all) (caddr all)) (finish-output *standard-output*) (exit 1)))
(load "{file}")
(format t "~%LOADED~%")
(let ((value {form})) (format t "~%VALUE ~a~%" value))
(finish-output *standard-output*)
(exit 0)
"""


def run_load(program, file, euslisp, form="nil"):
    with tempfile.NamedTemporaryFile("w", suffix=".l") as driver:
        driver.write(DRIVER.format(file=file, form=form))
        driver.flush()
        status, text = run([program, driver.name], file.parent, euslisp)
    loaded = "\nLOADED" in text
    value = re.search(r"\nVALUE (.*)", text)
    return loaded, value and value.group(1), ended(status), first_error(text)


def compare_load(ours, theirs):
    (loads, value, how, why), (they_load, their_value, their_how, their_why) = ours, theirs
    same = loads and (not they_load or their_value is None or value == their_value)
    note = (why or how) if not loads else "" if same else f"value {value}, not {their_value}"
    return Outcome(loads, same, note[:90]), Outcome(they_load, their_value is not None, "" if they_load else (their_why or their_how)[:60])


# The call of each benchmark, with a small argument, whose value is compared. Times that it prints are not.
FORMS = {
    "combination.l": "(combination '(1 2 3))",
    "dynprog.l": "(fastest-matmul '((10 20) (20 50) (50 1) (1 100)))",
    "fib.l": "(list (fib 12) (ifib 12) (fact 10))",
    "kclqsort.l": "(qsort '(3 1 2 5 4) nil)",
    "lcs.l": "(r-lcs-main \"abcbdab\" \"bdcaba\")",
    "pfib.l": "(list (fib 12) (ifib 12) (fact 10))",
    "qsort.l": "(qsort '(3 1 2 5 4) nil)",
    "queen.l": "(list (queens1 6) (queens2 6))",
    "sort.l": "(sortx (list 3 1 2 5 4) #'<)",
    "tak.l": "(stak 8 4 2)",
    "gabriel2.l": "(deriv '(+ (* 3 x x) (* a x x) (* b x) 5))",
}


def build_test_library(euslisp):
    """Builds the library that test-foreign.l calls."""
    test = euslisp / "test"
    words = ["c++", "-w", "-shared", "-fPIC", "-O2", "-DLinux", "-DGCC", f"-I{euslisp}/lisp/c", "-o",
             str(test / "test_foreign.so"), str(test / "test_foreign.c")]
    if shutil.which("c++") is None or subprocess.run(words).returncode != 0:
        print("lisp-compat: test_foreign.so is not built, as test-foreign.l needs it", file=sys.stderr)


def test_set(programs, euslisp, _):
    build_test_library(euslisp)
    for file in sorted((euslisp / "test").glob("*.l")):
        yield file.name, compare_test(*(run_test(program, file, euslisp) for program in programs))


def bench_set(programs, euslisp, _):
    wanted = {".l", ".lsp", ".LSP", ".L"}
    for file in sorted((euslisp / "contrib/bench").rglob("*")):
        if file.suffix in wanted:
            form = FORMS.get(file.name, "nil")
            name = str(file.relative_to(euslisp / "contrib/bench"))
            yield name, compare_load(*(run_load(program, file, euslisp, form) for program in programs))


def llib_set(programs, euslisp, _):
    for file in sorted((euslisp / "lib/llib").glob("*.l")):
        yield file.name, compare_load(*(run_load(program, file, euslisp) for program in programs))


# Each set has a title and a function that yields, for each of its files, the name and the outcomes of both.
SETS = {
    "test": ("EusLisp `test/*.l`", test_set),
    "bench": ("EusLisp `contrib/bench`", bench_set),
    "llib": ("EusLisp `lib/llib`", llib_set),
}


def more_pages(euslisp, jskeus, missing):
    """Returns what the scripts of ci/lisp-compat print: each runs further sets, given both folders. They exit with 2 when
    one of theirs is missing."""
    text = ""
    for script in sorted((ROOT / "ci/lisp-compat").glob("*.py")):
        print(f"{script.name} runs", flush=True)
        done = subprocess.run([sys.executable, str(script), str(euslisp), str(jskeus)], capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        if done.returncode not in (0, 1) or not done.stdout.strip():
            missing.append(script.name)
        text += f"\n{done.stdout.strip()}\n"
    return text


def reasons():
    """Returns why files do not pass, by set and file."""
    found = {}
    for line in (ROOT / "ci/lisp-compat/reasons.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            where, _, why = line.partition(": ")
            found[where] = why
    return found


def mark(yes):
    return "yes" if yes else "no"


def counts(rows):
    ours = [ours for _, (ours, _) in rows]
    theirs = [theirs for _, (_, theirs) in rows]
    return len(rows), sum(o.loads for o in ours), sum(o.passes for o in ours), sum(t.loads for t in theirs)


def page(results, commits):
    lines = ["# EusLisp's own files", "",
             "`make lisp-compat` runs the files below, unmodified, on `largesse lisp` and on EusLisp's `eusgl`, and writes this page.",
             "A test *loads* if it runs to its results, and *passes* if every assertion that holds in `eusgl` holds here. Another",
             "file *loads* without an error, and *passes* if the value of its program is that of `eusgl`.", ""]
    lines += [f"{name} is at commit `{commit[:12]}`." for name, commit in commits.items()]
    lines += ["", "| Set | Files | Load | Pass | Load in `eusgl` |", "|---|---|---|---|---|"]
    for name, rows in results.items():
        lines.append("| {} | {} | {} | {} | {} |".format(SETS[name][0], *counts(rows)))
    known = reasons()
    for name, rows in results.items():
        lines += ["", f"## {SETS[name][0]}", "", "| File | Loads | Passes | Loads in `eusgl` | Note |", "|---|---|---|---|---|"]
        for file, (ours, theirs) in rows:
            note = ours.note or (f"eusgl: {theirs.note}" if theirs.note else "")
            note = note if ours.passes else known.get(f"{name}/{file}", note)
            note = note.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
            lines.append(f"| `{file}` | {mark(ours.loads)} | {mark(ours.passes)} | {mark(theirs.loads)} | {note} |")
    return "\n".join(lines) + "\n"


def main():
    wanted = sys.argv[1:] or list(SETS)
    lisp = os.environ.get("LARGESSE_LISP") or str(ROOT / "target/release/largesse-lisp")
    if not os.access(lisp, os.X_OK):
        fail(f"{lisp} is missing: make command, or set LARGESSE_LISP")
    eusgl = shutil.which("eusgl") or fail("eusgl is missing: apt-get install euslisp")
    euslisp, commit = repository("EUSLISP", "EusLisp")
    commits = {"EusLisp": commit}
    jskeus, commits["jskeus"] = repository("JSKEUS", "jskeus")
    for name, commit in commits.items():
        print(f"{name} {commit}", flush=True)
    results, missing = {}, []
    for name in wanted:
        rows = []
        for file, outcomes in SETS[name][1]((lisp, eusgl), euslisp, jskeus):
            rows.append((file, outcomes))
            print(f"{name:6} {file:28} loads {mark(outcomes[0].loads):3} passes {mark(outcomes[0].passes):3} "
                  f"eusgl {mark(outcomes[1].loads):3} {outcomes[0].note}", flush=True)
        results[name] = rows
        print("{}: {} files, {} load, {} pass, {} load in eusgl".format(name, *counts(rows)), flush=True)
        if not rows:
            missing.append(name)
    if not sys.argv[1:]:
        PAGE.write_text(page(results, commits) + more_pages(euslisp, jskeus, missing))
    for name in missing:
        print(f"lisp-compat: the set {name} is missing", file=sys.stderr)
    return 1 if missing else 0


sys.exit(main())
