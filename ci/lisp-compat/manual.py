#!/usr/bin/env python3
"""Compares every function, macro, method and variable of EusLisp's manual on `largesse lisp` and on eusgl.

usage: manual.py EUSLISP_FOLDER [JSKEUS_FOLDER] [--chapter N] [--verbose]

The names come from the manual's sources in EUSLISP_FOLDER/doc/latex, the examples from examples/*.txt: a line of such
a file is `name | form`, for a method `class :selector | form`. Lines that begin with `@` are forms that are evaluated
before the examples. A name in left-out.txt, `name | reason`, has no example.
Prints a part of the page docs/lisp-compat.md. LARGESSE_LISP names the program [target/release/largesse-lisp].
"""
import argparse, collections, os, pathlib, re, shutil, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from finished import finished

ROOT = HERE.parent.parent
SHOW = ROOT / "fronts/lisp/tests/show.l"
LIMIT = 60  # seconds for the examples of a chapter, or for those after one that ended the process
# The manual's files with their chapters. Chapters 1 and 2 document no names; 9 and 10 are those of `lib/llib`.
SOURCES = {"generals": 3, "controls": 4, "objects": 5, "arith": 6, "symbols": 7, "sequences": 8, "io": 11,
           "evaluation": 12, "loadforeign": 12, "sysfunc": 13, "mthread": 14, "matrix": 15, "geometry": 16,
           "contact": 16, "voronoi": 16}
TITLES = {3: "Forms", 4: "Control", 5: "Objects", 6: "Arithmetic", 7: "Symbols and packages",
          8: "Sequences and tables", 11: "Streams", 12: "Evaluation", 13: "System", 14: "Threads",
          15: "Geometric functions", 16: "Geometric modeling"}
METHODS, VARIABLES = {"method", "met"}, {"var", "const", "class"}
Name = collections.namedtuple("Name", "chapter kind key")


# Names of the manual.

def groups(text, at, count):
    """Returns the contents of the next `count` pairs of braces."""
    found = []
    while len(found) < count and (match := re.compile(r"\s*\{").match(text, at)):
        start = end = match.end()
        depth = 1
        while depth and end < len(text):
            if text[end] == "\\":
                end += 1
            else:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[start:end - 1])
        at = end
    return found


def plain(name):
    """Returns a name without LaTeX's marks."""
    for mark, text in {"\\_": "_", "\\#": "#", "$": "", "\\&": "&"}.items():
        name = name.replace(mark, text)
    return name.strip()


def documented(folder):
    """Returns the names of the manual, each once."""
    command = re.compile(r"\\(?:(func|fun|macro|mac|method|met|special|spe|var|const|class)desc"
                         r"|(longdescription|functiondescription))\b")
    names = {}
    for source, chapter in SOURCES.items():
        text = (folder / "doc/latex" / source).with_suffix(".tex").read_text(encoding="latin-1")
        text, owner = re.sub(r"(?<!\\)%.*", "", text), ""
        for match in command.finditer(text):
            parts = groups(text, match.end(), 3)
            kind, name = match.group(1), plain(parts[0]) if parts else ""
            if match.group(2) == "longdescription":
                kind, name = parts[0].strip(), plain(parts[1])
            elif match.group(2):
                kind = plain(parts[2])[:3] if len(parts) > 2 else "func"
            if not name or " " in name:
                continue
            owner = name if kind == "class" else owner
            key = f"{owner} {name}" if kind in METHODS else name
            names.setdefault((chapter, key), Name(chapter, kind, key))
    return list(names.values())


# Examples.

def lines(path):
    for line in path.read_text().splitlines():
        if line.startswith("@ "):
            yield None, line[2:]
        elif " | " in line:
            yield tuple(line.split(" | ", 1))


def examples():
    """Returns for each chapter the forms to evaluate first, and the form of each name."""
    found = {}
    for path in sorted((HERE / "examples").glob("*.txt")):
        before, forms = found.setdefault(int(path.name[:2]), ([], {}))
        for name, form in lines(path):
            if name is None:
                before.append(form)
            else:
                forms[name] = form
    return found


# Runs.

def run(program, text, folder):
    """Returns what a program prints that loads a text."""
    path = folder / "driver.l"
    path.write_text(text)
    environment = dict(os.environ, TERM="dumb", TZ="UTC", DISPLAY="")
    return finished([program, str(path)], folder, environment, LIMIT)[1].decode("latin-1")


PRELUDE = """(lisp::install-error-handler #'(lambda (&rest all) (throw :failed (list 'error (cadr all)))))
(load "{show}")
(defun manual-show (number value)
  (let ((s (make-string-output-stream)))
    (show s value)
    (format t "~%@@~d ~a~%@@end ~d~%" number (get-output-stream-string s) number)
    (finish-output *standard-output*)))
"""
ANSWER = re.compile(r"\n@@(\d+) (.*?)\n@@end \1\n", re.S)


def answers(program, before, forms):
    """Returns the printed value of each form. A form that ends the process, or that takes too long, has none; the
    others are then evaluated by another process."""
    found, start = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        while start < len(forms):
            text = PRELUDE.format(show=SHOW) + "".join(f"(catch :failed {form})\n" for form in before)
            for number, form in enumerate(forms[start:], start):
                text += f"(manual-show {number} (catch :failed {form}))\n"
            printed = ANSWER.findall(run(program, text + "(exit 0)\n", pathlib.Path(folder)))
            for number, value in printed:
                found[int(number)] = value
            start = max((int(number) for number, _ in printed), default=start - 1) + 2
    return [found.get(number, "no answer") for number in range(len(forms))]


def present(program, names):
    """Returns the keys of the names that a program has."""
    def question(name):
        if name.kind in METHODS:
            owner, selector = name.key.split(" ")
            return f"(manual-method '{owner} '{selector})"
        test = "boundp" if name.kind in VARIABLES else "manual-known"
        return f"({test} '{name.key})"
    before = ["(defun manual-known (s) (or (fboundp s) (boundp s)))",
              "(defun manual-method (c s) (if (boundp c) (let ((c (symbol-value c)) found)"
              " (while c (if (assq s (send c :methods)) (setq found t)) (setq c (send c :super))) found)))"]
    told = answers(program, before, [f"(if {question(name)} 1 0)" for name in names])
    return {name.key for name, answer in zip(names, told) if answer == "1"}


# Comparison.

def number(word):
    try:
        return float(word) if "." in word else None
    except ValueError:
        return None


def agree(ours, theirs):
    """Compares word by word, floats to nine digits: EusLisp drops two bits of each."""
    if ours == "no answer" or ours.startswith("(error "):
        return False
    words = [re.sub(r"([()])", r" \1 ", text).split() for text in (ours, theirs)]
    if len(words[0]) != len(words[1]):
        return False
    for a, b in zip(*words):
        x, y = number(a), number(b)
        if a != b and (x is None or y is None or not abs(x - y) <= 1e-9 * max(1.0, abs(y))):
            return False
    return True


def compared(programs, names, wanted):
    """Returns for each name: whether eusgl has it, whether we have it, and our answer with that of eusgl."""
    results = {}
    for chapter, (before, forms) in examples().items():
        mine = [name for name in names if name.chapter == chapter]
        if wanted not in (None, chapter) or not mine:
            continue
        there = [present(program, mine) for program in programs]
        keys = [name.key for name in mine if name.key in forms]
        told = [answers(program, before, [forms[key] for key in keys]) for program in programs]
        values = dict(zip(keys, zip(*told)))
        for name in mine:
            results[name] = (name.key in there[1], name.key in there[0], values.get(name.key))
    return results


def marked(text):
    return text.replace("|", "/").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("\n", " ")[:60]


def page(results, reasons, verbose):
    rows, notes = collections.defaultdict(collections.Counter), []
    for name, (theirs, ours, values) in results.items():
        row = rows[name.chapter]
        row["documented"] += 1
        row["theirs"] += theirs
        row["ours"] += ours
        good = ours and values is not None and agree(*values)
        row["agree"] += good and theirs
        if not good and theirs:
            why = reasons.get(name.key)
            row["named"] += why is not None
            row["broken"] += bool(why and why.startswith("`eusgl`"))
            shown = why or ("no example" if values is None else f"{marked(values[0])}; eusgl: {marked(values[1])}")
            notes.append(f"| {name.chapter} | `{name.key}` | {'yes' if ours else 'no'} | {shown} |")
        if verbose:
            print(name.chapter, name.key, "agrees" if good else "DIFFERS", values, file=sys.stderr)
    total = collections.Counter()
    out = ["## The manual", "",
           "Functions, macros, special forms, methods, variables and classes of the manual's chapters. One *agrees* if",
           "its example (`ci/lisp-compat/examples`) has the same value in `eusgl`. Names that `eusgl` lacks are not",
           "counted as agreeing. A name that is defined only to signal an error counts as here.", "",
           "| Chapter | Documented | In `eusgl` | Here | Agree | Differ, with a reason |",
           "|---|---|---|---|---|---|"]
    columns = ["documented", "theirs", "ours", "agree", "named"]
    for chapter, row in sorted(rows.items()):
        total.update(row)
        out.append(f"| {chapter} {TITLES[chapter]} | " + " | ".join(str(row[column]) for column in columns) + " |")
    out.append("| all | " + " | ".join(str(total[column]) for column in columns) + " |")
    share = 100 * total["agree"] / max(1, total["theirs"] - total["broken"])
    out += ["", f"`eusgl` itself fails for {total['broken']} of its names. Of the others {share:.1f} % have an example",
            "that agrees. The rest:", "",
            "| Chapter | Name | Here | Why |", "|---|---|---|---|"] + notes
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("euslisp", type=pathlib.Path)
    parser.add_argument("jskeus", nargs="?")
    parser.add_argument("--chapter", type=int)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    lisp = os.environ.get("LARGESSE_LISP") or str(ROOT / "target/release/largesse-lisp")
    eusgl = shutil.which("eusgl")
    if not eusgl or not os.access(lisp, os.X_OK):
        sys.exit(f"manual.py: eusgl or {lisp} is missing")
    names = documented(args.euslisp)
    reasons = {name: reason for name, reason in lines(HERE / "left-out.txt")}
    print(page(compared((lisp, eusgl), names, args.chapter), reasons, args.verbose))


main()
