#!/usr/bin/env python3
"""Runs the robot models of EusLisp and the headless files of jskeus on `largesse lisp`, beside `irteusgl`.

    ci/lisp-compat/models.py EUSLISP_FOLDER JSKEUS_FOLDER [--sets models,irteus,tests,demos] [--sample N]

The folders are copies of the repositories euslisp/EusLisp and euslisp/jskeus. Prints a table in Markdown: a row for
each file that fails or differs (`--all`: for each file), and totals. Exits with 1 when a file that `irteusgl` loads
does not load, or answers otherwise, and with 2 when a set has no file.
"""

import argparse
import os
import pathlib
import random
import re
import selectors
import subprocess
import sys
import tempfile
import time

# What jskeus' C libraries load at the start, in this order; the package in which each file is read.
IRTEUS = [(name, "USER") for name in ("irtmath", "irtutil", "irtgraph")]
IRTEUS += [(name, "GEOMETRY") for name in (
    "irtgeo", "pqp", "irtscene", "irtmodel", "irtdyna", "irtrobot", "irtsensor", "irtbvh", "irtcollada", "irtstl",
    "irtwrl", "irtpointcloud", "bullet", "irtcollision")]
IRTEUS += [(name, "GL") for name in ("irtglrgb", "irtgl", "irtviewer")]

# The calls of a demo, after its file is loaded; their values must not be nil where irteusgl's are not.
DEMOS = {
    "closed-loop.l": ["(test-sample-1dof-closed-link-robot)", "(test-sample-2dof-closed-link-robot)"],
    "crank-motion.l": ["(crank-motion)"],
    "dual-arm-ik.l": ["(dual-arm-ik)"],
    "dual-manip-ik.l": ["(dual-manip-ik)"],
    "full-body-ik.l": ["(full-body-ik :debug-view nil)"],
    "function-ik.l": ["(shake-cocktail)"],
    "hand-grasp-ik.l": ["(hand-grasp)"],
    "hanoi-arm.l": ["(hanoi-arm)"],
    "look-at-ik.l": ["(look-at-ik-all)"],
    "null-space-ik.l": ["(null-space-ik)"],
    "particle.l": ["(particle)"],
    "sample-arm-model.l": ["(send (instance sarmclass :init) :angle-vector)"],
    "sample-collision.l": ["(sample-collision-distance-sphere)", "(sample-collision-distance-cube)"],
    "sample-hand-model.l": ["(send (instance sample-hand :init) :angle-vector)"],
    "sample-multidof-arm-model.l": ["(send (instance sample-multidof-arm-robot :init) :angle-vector)"],
    "sample-robot-model.l": ["(send (instance sample-robot :init) :reset-pose)"],
    "scene.l": ["(length (send (sample-room) :objects))"],
    "special-joints.l": ["(test-interlocking-joint-arm)", "(test-sample-legged-robot-with-interlocking-joints)"],
    "virtual-joints.l": ["(test-virtual-joint-for-rotation-axis-all)"],
    "walk-motion.l": ["(length (walk-motion-for-sample-robot))", "(test-preview-control-0)"],
}

# Evaluates forms one after the other; an error ends one form only. Both systems read this text.
DRIVER = r"""
(defun compat-say (word x) (format t "~%@@ ~a ~a~%" word x) (finish-output t))
(setq *error-handler* nil)
(defun compat-handler (&rest args)
  (compat-say "ERROR" (substitute 32 10 (format nil "~a" args)))
  (throw :compat :failed))
(lisp::install-error-handler 'compat-handler)
(defmacro compat-try (name form)
  `(progn (compat-say "BEGIN" ,name)
          (compat-say "VALUE" (catch :compat (prin1-to-string ,form)))
          (compat-say "END" ,name)))
(defun compat-sum (vs) (let ((s (float-vector 0 0 0))) (dolist (v vs s) (v+ s v s))))
(defun compat-vertices (b)
  (cond ((find-method b :vertices) (send b :worldcoords) (copy-seq (send b :vertices)))
        ((find-method b :convert-to-faces) (apply #'append (send-all (send b :convert-to-faces) :vertices)))))
(defun compat-parts (m)
  (cond ((find-method m :bodies) (send m :bodies))
        ((find-method m :objects) (apply #'append (mapcar #'compat-parts (send m :objects))))
        (t (list m))))
(defun compat-volume (b)
  (if (and (derivedp b body) (get b :volume)) (get b :volume) 0))
(defun compat-figures (m)
  (let* ((parts (compat-parts m)) (vs (apply #'append (mapcar #'compat-vertices parts))))
    (list (length parts) (length vs) (compat-sum vs) (apply #'+ (mapcar #'compat-volume parts))
          (if (derivedp m cascaded-link) (send-all (send m :links) :weight))
          (if (derivedp m cascaded-link) (send m :angle-vector)))))
(defun compat-model (path maker)
  (load path)
  (let ((s (find-symbol (string-upcase maker))))
    (if (and s (fboundp s)) (compat-figures (funcall s)) :loaded)))
"""

Result = tuple  # (status, value): loaded, failed (with the message) or timeout


class System:
    """A Lisp that evaluates forms: its command, and the text that it evaluates first."""

    def __init__(self, name, command, prelude, environment, folder):
        self.name, self.command, self.prelude, self.environment, self.folder = name, command, prelude, environment, folder

    def evaluate(self, items, limit):
        """Evaluates (name, form) pairs in as few processes as possible; returns {name: (status, value)}."""
        results, rest = {}, list(items)
        while rest:
            done = self._run(rest, limit)
            results.update(done)
            rest = [item for item in rest if item[0] not in results]
            if not done:
                results[rest[0][0]] = ("failed", "the process ended before the first form")
                rest = rest[1:]
        return results

    def _run(self, items, limit):
        with tempfile.NamedTemporaryFile("w", suffix=".l", delete=False) as file:
            file.write(self.prelude + DRIVER)
            for name, form in items:
                file.write(f"(compat-try {quoted(name)} {form})\n")
            file.write("(exit 0)\n")
        try:
            return self._read(file.name, limit)
        finally:
            os.unlink(file.name)

    def _read(self, path, limit):
        process = subprocess.Popen(
            [*self.command, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=self.folder, env={**os.environ, **self.environment})
        os.set_blocking(process.stdout.fileno(), False)
        results, current, error, value, pending = {}, None, None, "", b""
        selector = selectors.DefaultSelector()
        selector.register(process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + limit
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                if current is not None:
                    results[current] = ("timeout", f"more than {limit} s")
                break
            data = process.stdout.read()
            if data == b"":
                if current is not None:
                    results[current] = ("failed", "the process ended")
                break
            *lines, pending = (pending + (data or b"")).split(b"\n")
            for line in lines:
                word, _, text = line.decode(errors="replace").removeprefix("@@ ").partition(" ")
                if not line.startswith(b"@@ "):
                    continue
                if word == "BEGIN":
                    current, error, value = text, None, ""
                    deadline = time.monotonic() + limit
                elif word == "ERROR":
                    error = error or text
                elif word == "VALUE":
                    value = text
                elif word == "END" and current is not None:
                    results[current] = ("failed", error) if error else ("loaded", value)
                    current = None
        process.kill()
        process.wait()
        return results


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?|-?nan|-?inf", re.IGNORECASE)


def equal(ours, theirs):
    """Compares two printed values: numbers to 1e-4 of their size, everything else as text."""
    if NUMBER.sub("#", ours.lower()) != NUMBER.sub("#", theirs.lower()):
        return False
    for a, b in zip(NUMBER.findall(ours.lower()), NUMBER.findall(theirs.lower())):
        if "n" in a or "n" in b:
            if a.lstrip("-") != b.lstrip("-"):
                return False
        elif abs(float(a) - float(b)) > 1e-4 * max(1.0, abs(float(a)), abs(float(b))):
            return False
    return True


def models(euslisp, sample):
    """Returns (name, form) for each model; irt-all-* and load-irt-all-* only list the others."""
    paths = sorted(path for path in (euslisp / "models").glob("*.l") if "irt-all" not in path.name)
    if sample:
        paths = sorted(random.Random(1).sample(paths, min(sample, len(paths))))
    maker = lambda path: re.sub("-(object|robot|scene)$", "", path.stem)
    return [(path.name, f"(compat-model {quoted(path)} {quoted(maker(path))})") for path in paths]


def demos(irteus):
    for name in sorted(path.name for path in (irteus / "demo").glob("*.l")):
        calls = " ".join(f"(if {call} :true)" for call in DEMOS.get(name, []))
        yield name, f"(progn (load {quoted(irteus / 'demo' / name)}) (list {calls}))"


def run_test(system, path, limit):
    """Runs a file of tests, which ends its process itself; returns a status and the numbers of assertions."""
    with tempfile.NamedTemporaryFile("w", suffix=".l", delete=False) as file:
        file.write(system.prelude + f"(load {quoted(path)})\n(run-all-tests)\n(exit 0)\n")
    try:
        done = subprocess.run(
            [*system.command, file.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=system.folder, env={**os.environ, **system.environment}, timeout=limit)
    except subprocess.TimeoutExpired:
        return "timeout", f"more than {limit} s"
    finally:
        os.unlink(file.name)
    text = done.stdout.decode(errors="replace")
    found = re.search(r"ALL RESULTS:.*?TEST-NUM: *(\d+).*?PASSED: *(\d+).*?FAILURE: *(\d+)", text, re.DOTALL)
    if found:
        return "loaded", "{1} passed, {2} failed".format(*found.groups())
    lines = [line for line in text.splitlines() if line.strip()]
    return "failed", lines[-1][:200] if lines else "no output"


def reasons():
    """Returns why files differ, by set and file."""
    lines = (pathlib.Path(__file__).parent / "reasons.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def shown(text):
    """Returns a text as Markdown shows it unchanged."""
    return re.sub(r"([|*_<])", lambda found: "&lt;" if found[0] == "<" else "\\" + found[0], text)


def report(title, ours, theirs, show_all, same):
    """Prints the rows of a set and its total; returns the number of files that are worse than in irteusgl."""
    if not theirs:
        print(f"lisp-compat: the set {title} is missing", file=sys.stderr)
        sys.exit(2)
    worse = loads = equals = both = 0
    known = reasons()
    for name in sorted(theirs):
        (status, value), (wanted, oracle) = ours.get(name, ("failed", "not run")), theirs[name]
        agree = wanted == "loaded" and status == "loaded" and same(value, oracle)
        loads += status == "loaded"
        both += wanted == "loaded"
        equals += agree
        bad = wanted == "loaded" and not agree
        worse += bad
        if show_all or bad:
            note = "" if agree else " " + (known.get(f"{title}/{name}") or shown(f"{value[:120]} / {oracle[:120]}"))
            print(f"| {title} | {name} | {status} | {wanted} | {'yes' if agree else 'no'} |{note} |")
    print(f"| **{title}** | {len(theirs)} files | {loads} | {both} | {equals} | |", flush=True)
    return worse


def no_worse(ours, theirs):
    """Compares the results of tests: at least as many assertions pass, and no more fail."""
    counts = lambda text: [int(number) for number in re.findall(r"\d+", text)]
    return counts(ours)[:1] >= counts(theirs)[:1] and counts(ours)[1:] <= counts(theirs)[1:]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("euslisp", type=pathlib.Path)
    parser.add_argument("jskeus", type=pathlib.Path)
    parser.add_argument("--lisp", default="target/release/largesse-lisp", help="the program largesse-lisp")
    parser.add_argument("--oracle", default="irteusgl")
    parser.add_argument("--eusdir", default="/usr/share/euslisp")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a file")
    parser.add_argument("--sample", type=int, default=0, help="number of models, drawn at random (default: all)")
    parser.add_argument("--sets", default="irteus,models,tests,demos")
    parser.add_argument("--only", default="", help="only files whose names contain this")
    parser.add_argument("--prelude", default="", help="a Lisp file that largesse-lisp loads first")
    parser.add_argument("--all", action="store_true", help="print a row for every file")
    return parser.parse_args()


def main():
    options = parse()
    euslisp, jskeus = options.euslisp.resolve(), options.jskeus.resolve()
    irteus = jskeus / "irteus" if (jskeus / "irteus").is_dir() else jskeus
    environment = {"EUSDIR": options.eusdir}
    first = f"(load {quoted(pathlib.Path(options.prelude).resolve())})\n" if options.prelude else ""
    path = f'(setq *load-path* (append (list "{jskeus}/" "{irteus}/demo/" "{euslisp}/") *load-path*))\n'
    lisp = [str(pathlib.Path(options.lisp).resolve())]
    bare = System("largesse", lisp, first, environment, euslisp)
    ours = System("largesse", lisp, first + f"(load-irteus {quoted(irteus)})\n" + path, environment, euslisp)
    theirs = System("irteusgl", [options.oracle], path, environment, euslisp)
    wanted, worse = options.sets.split(","), 0
    chosen = lambda items: [item for item in items if options.only in item[0]]
    print("""## jskeus and the models of robots

Each file of jskeus' `irteus` loads; a model is built, and its vertices, volumes and link masses are compared to 1e-4; a
file of tests has no fewer assertions that pass and no more that fail; the calls of a demo return a value where
`irteusgl` returns one. The table has a row for each file that is worse than in `irteusgl`, and the totals.

| Set | File | `largesse lisp` | `irteusgl` | Equal | Reason, or the values: `largesse lisp` / `irteusgl` |
|---|---|---|---|---|---|""")
    if "irteus" in wanted:
        forms = [(f"{name}.l", f'(progn (in-package "{package}") (load {quoted(irteus / name)}) (in-package "USER") t)')
                 for name, package in IRTEUS]
        worse += report("irteus", bare.evaluate(forms, options.limit), {name: ("loaded", "t") for name, _ in forms},
                        options.all, lambda a, b: True)
    if "models" in wanted:
        forms = chosen(models(euslisp, options.sample))
        worse += report("models", ours.evaluate(forms, options.limit), theirs.evaluate(forms, options.limit),
                        options.all, equal)
    if "tests" in wanted:
        files = [path for path in sorted((irteus / "test").glob("*.l")) if options.only in path.name]
        both = [{path.name: run_test(system, path, options.limit) for path in files} for system in (ours, theirs)]
        worse += report("tests", *both, options.all, no_worse)
    if "demos" in wanted:
        forms = chosen(demos(irteus))
        both = [{name: system.evaluate([(name, form)], options.limit)[name] for name, form in forms}
                for system in (ours, theirs)]
        worse += report("demos", *both, options.all, equal)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
