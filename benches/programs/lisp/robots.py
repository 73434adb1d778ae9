#!/usr/bin/env python3
"""Compares Largesse's Lisp with jskeus' irteusgl on robots: loading models, inverse kinematics, walking.

usage: robots.py EUSLISP_FOLDER JSKEUS_FOLDER [--rounds N] [--only CASE] [--sample N] [--csv FILE]

The folders are copies of the repositories euslisp/EusLisp and euslisp/jskeus. Both systems run the same forms in turns,
each in a new process; only the forms are timed, not the start. Prints the median ratios, Largesse / irteusgl, of the
elapsed times and of the processor times (user and system, all threads): on a busy machine only those compare. Exits
with 1 if a ratio of elapsed times is above its goal: 0.25 for all models on one thread, 0.14 on two, 0.5 for the others;
for the closed loop, which sleeps for 1.4 s, the ratio of processor times.
`--sample` takes every Nth model, and `--csv` appends the ratios to a file.
LARGESSE_LISP names the program [target/release/largesse-lisp].
"""
import argparse, os, pathlib, re, statistics, subprocess, sys, tempfile

import figures

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Forms of jskeus' demos and tests: name, file that is loaded before the clock starts, and form that is timed.
MOTIONS = [
    ("inverse kinematics, dual arm", "irteus/demo/dual-arm-ik.l", "(dual-arm-ik)"),
    ("inverse kinematics, full body", "irteus/demo/full-body-ik.l", "(full-body-ik :debug-view nil)"),
    ("inverse kinematics, closed loop", "irteus/demo/closed-loop.l", "(test-sample-1dof-closed-link-robot)"),
    ("walking", "irteus/demo/walk-motion.l", "(walk-motion-for-sample-robot)"),
]
GOALS = {"models": 0.25, "models, two threads": 0.14}
# The program itself sleeps for 1.4 s, so that its goal is one of processor time.
SLEEPS = "inverse kinematics, closed loop"
DRIVER = """
(defun bench-seconds ()
  (let ((now (unix:gettimeofday))) (+ (car now) (* 1e-6 (cadr now)))))
(defun bench-processor-seconds ()
  (let ((used (unix:getrusage 0))) (+ (elt used 0) (elt used 1))))
(defun bench-models (models)
  (dolist (model models)
    (load (car model))
    (let ((maker (find-symbol (string-upcase (cdr model)))))
      (if (and maker (fboundp maker)) (funcall maker)))))
{before}
(let ((began (bench-seconds)) (used (bench-processor-seconds)))
  {form}
  (format t "~%SECONDS ~a ~a~%" (- (bench-seconds) began) (- (bench-processor-seconds) used)))
(exit 0)
"""


def models(euslisp, step):
    """The file and the name of the function of each model; irt-all-* only list the others."""
    paths = sorted(path for path in (euslisp / "models").glob("*.l") if "irt-all" not in path.name)
    return [(path, re.sub("-(object|robot|scene)$", "", path.stem)) for path in paths[::step]]


def listed(of):
    return "'(" + " ".join(f'("{path}" . "{maker}")' for path, maker in of) + ")"


def seconds(command, first, before, form, folder):
    """Elapsed and processor seconds of `form`, or none if the program does not run to its end."""
    with tempfile.NamedTemporaryFile("w", suffix=".l") as file:
        file.write(first + DRIVER.format(before=before, form=form))
        file.flush()
        environment = dict(os.environ, EUSDIR=os.environ.get("EUSDIR", "/usr/share/euslisp"), DISPLAY="")
        try:
            run = subprocess.run([command, file.name], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=900)
        except subprocess.TimeoutExpired:
            return None
    found = re.search(rb"\nSECONDS (\S+) (\S+)\n", run.stdout)
    return found and (float(found[1]), float(found[2]))


def cases(euslisp, step):
    """(name, what is loaded before, Largesse's form, irteusgl's form) of each case."""
    of = models(euslisp, step)
    one = f"(bench-models {listed(of)})"
    halves = " ".join(f"(sys:thread #'bench-models {listed(of[half::2])})" for half in range(2))
    two = f"(mapc #'sys:wait-thread (list {halves}))"
    yield "models", "", one, one
    yield "models, two threads", "(sys:make-thread 2)", two, one
    for name, file, form in MOTIONS:
        yield name, f'(load "{file}")', form, form


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("euslisp", type=pathlib.Path)
    parser.add_argument("jskeus", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases whose names begin so")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    commit = figures.commit() if args.csv else None
    euslisp, jskeus = args.euslisp.resolve(), args.jskeus.resolve()
    lisp = os.environ.get("LARGESSE_LISP") or str(ROOT / "target/release/largesse-lisp")
    path = f'(setq *load-path* (append (list "{jskeus}/" "{jskeus}/irteus/demo/" "{euslisp}/") *load-path*))\n'
    ours = f'(load-irteus "{jskeus}/irteus")\n' + path
    good, measured = True, {}
    for name, before, our_form, their_form in cases(euslisp, args.sample):
        if not name.startswith(args.only):
            continue
        ratios, processor = [], []
        for _ in range(args.rounds):
            theirs = seconds("irteusgl", path, before if "thread" not in name else "", their_form, euslisp)
            mine = seconds(lisp, ours, before, our_form, euslisp)
            if theirs is None or mine is None:
                print(f"{name}: " + ", ".join("runs" if it else "fails" for it in (mine, theirs)), file=sys.stderr)
                good = False
                break
            ratios.append(mine[0] / theirs[0])
            processor.append(mine[1] / theirs[1])
        if ratios:
            median, goal = statistics.median(ratios), GOALS.get(name, 0.5)
            good = good and (statistics.median(processor) if name == SLEEPS else median) <= goal
            measured[name, "time"] = ratios
            measured[name, "processor time"] = processor
            print(f"{name:<32} {median:>6.3f}  goal {goal}  processor time {statistics.median(processor):>6.3f}",
                  flush=True)
    if args.csv:
        figures.append(args.csv, "robots", measured, commit)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
