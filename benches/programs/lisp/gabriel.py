#!/usr/bin/env python3
"""Compares Largesse's Lisp with EusLisp on the benchmarks of EusLisp's contrib/bench, interpreted and compiled.

usage: gabriel.py EUSLISP_FOLDER [--rounds N] [--only NAME] [--csv FILE | --quick]

Both systems run the same sources in turns; each form is repeated until 0.3 s of user time are spent. Prints the median
of the ratios of the times of one run, Largesse / EusLisp, and exits with 1 if a value differs, an interpreted ratio is
above 1, a compiled one above 1, or the geometric mean of the compiled ones above 0.5. `--csv
docs/results/data/lisp.csv` appends the ratios as the table `gabriel`; that needs a checkout without changes, whose commit
the rows name. `--quick` takes one round of 0.02 s, prints the rows, and exits with 1 if a value differs.
LARGESSE_LISP names the program [target/release/largesse-lisp]. EusLisp compiles with the system's C compiler.
"""
import argparse, math, os, pathlib, re, shutil, statistics, subprocess, sys, tempfile

import figures

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Name, file, and form.
PROGRAMS = [
    ("tak", "tak.l", "(tak 14 8 3)"),
    ("stak", "tak.l", "(stak 9 5 2)"),
    ("dtak", "tak.l", "(dtak 12 8 4)"),
    ("fib", "fib.l", "(fib 16)"),
    ("ifib", "fib.l", "(ifib 16)"),
    ("boyer", "boyer.l", "(test)"),
    ("deriv", "gabriel2.l", "(dotimes (i 300) (deriv '(+ (* 3 x x) (* a x x) (* b x) 5)))"),
    ("fft", "gabriel.l", "(let ((*standard-output* (make-string-output-stream))) (fft re im))"),
    ("puzzle", "gabriel2.l", "(let ((*standard-output* (make-string-output-stream))) (start) t)"),
    ("triang", "triang.l", "(let ((*standard-output* (make-string-output-stream))) (gogogo 22) t)"),
    ("queens1", "queen.l", "(queens1 6)"),
    ("queens2", "queen.l", "(queens2 6)"),
    ("dynprog", "dynprog.l", "(fastest-matmul '((10 20) (20 50) (50 1) (1 100) (100 3)))"),
    ("lcs", "lcs.l", "(r-lcs-main \"abcbdab\" \"bdcaba\")"),
    ("mandel", "mandel.l", "(make-mandel-10)"),
    ("qsort", "kclqsort.l", "(qsort '(3 1 2 5 4 9 8 7 6 0 11 15 12 14 13) nil)"),
    ("combination", "combination.l", "(length (combination '(1 2 3 4 5 6 7)))"),
]
DRIVER = """(lisp::install-error-handler
  #'(lambda (&rest all) (format t "~%FAILED ~a ~a~%" (cadr all) (caddr all)) (exit 1)))
{load}
(defun measured-form () {form})
{compile}
(let* ((value (measured-form)) (start (car (unix:getrusage 0))) (end start) (runs 0))
  (while (< (- end start) {least})
    (dotimes (i {step}) (measured-form))
    (setq runs (+ runs {step}) end (car (unix:getrusage 0))))
  (format t "~%VALUE ~s~%RUNS ~d~%SECONDS ~a~%" value runs (- end start)))
(exit 0)
"""


def seconds(program, folder, name, form, compiled, least):
    """Returns the user time of one run and the value, or none if the program does not run."""
    load = f'(load "{name}.l")'
    if compiled:
        load = f'(compile-file "{name}.l")\n(load "{name}")'
    step = 1
    text = DRIVER.format(load=load, form=form, compile="(compile 'measured-form)" if compiled else "", step=step,
                         least=least)
    (folder / "driver.l").write_text(text)
    environment = dict(os.environ, EUSDIR=os.environ.get("EUSDIR", "/usr/share/euslisp"), DISPLAY="")
    try:
        run = subprocess.run([program, "driver.l"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"VALUE (.*)\nRUNS (\d+)\nSECONDS (\S+)", run.stdout.decode("latin-1"))
    return found and (float(found.group(3)) / int(found.group(2)), found.group(1))


def compare(programs, euslisp, rounds, only, least):
    """Returns the ratios of each (name, mode), and the names whose values differ."""
    ratios, wrong = {}, []
    for name, file, form in PROGRAMS:
        if only and name not in only:
            continue
        for mode in ("interpreted", "compiled"):
            for _ in range(rounds):
                told = []
                for program in programs:
                    with tempfile.TemporaryDirectory() as folder:
                        folder = pathlib.Path(folder)
                        shutil.copy(euslisp / "contrib/bench" / file, folder / f"{name}.l")
                        told.append(seconds(program, folder, name, form, mode == "compiled", least))
                if told[0] is None or told[1] is None:
                    print(f"{name} {mode}: " + ", ".join("runs" if t else "fails" for t in told), file=sys.stderr)
                    break
                if told[0][1] != told[1][1]:
                    wrong.append(f"{name} {mode}: {told[0][1]}, not {told[1][1]}")
                ratios.setdefault((name, mode), []).append((told[0][0] / told[1][0], told[0][0], told[1][0]))
    return ratios, wrong


def means(ratios):
    """Yields, for each mode, the geometric mean over the programs in each round."""
    for mode in ("interpreted", "compiled"):
        rounds = zip(*([ratio for ratio, _, _ in runs] for (_, of), runs in ratios.items() if of == mode))
        values = [math.exp(statistics.mean(map(math.log, values))) for values in rounds]
        if values:
            yield ("geometric mean", mode), values


def report(ratios):
    """Prints the table, and returns whether the goals are met."""
    print("| Program | Interpreted | Compiled |\n|---|---|---|")
    medians = {case: statistics.median(ratio for ratio, _, _ in runs) for case, runs in ratios.items()}
    for name in dict.fromkeys(name for name, _ in medians):
        cells = [medians.get((name, mode)) for mode in ("interpreted", "compiled")]
        print(f"| {name} | " + " | ".join("–" if cell is None else f"{cell:.2f}" for cell in cells) + " |")
    overall = {mode: statistics.median(values) for (_, mode), values in means(ratios)}
    print("| geometric mean | " + " | ".join(f"{mean:.2f}" for mean in overall.values()) + " |")
    return all(value <= 1.0 for value in medians.values()) and overall.get("compiled", 0.0) <= 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("euslisp", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--csv", type=pathlib.Path)
    group.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    commit = figures.commit() if args.csv else None
    lisp = os.environ.get("LARGESSE_LISP") or str(ROOT / "target/release/largesse-lisp")
    eusgl = shutil.which("eusgl") or sys.exit("gabriel.py: eusgl is missing")
    rounds, least = (1, 0.02) if args.quick else (args.rounds, 0.3)
    ratios, wrong = compare((lisp, eusgl), args.euslisp, rounds, args.only, least)
    good = report(ratios)
    for line in wrong:
        print(line, file=sys.stderr)
    rows = {case: [ratio for ratio, _, _ in runs] for case, runs in ratios.items()} | dict(means(ratios))
    if args.csv:
        figures.append(args.csv, "gabriel", rows, commit)
    if args.quick:
        figures.show("gabriel", rows)
        return 1 if wrong else 0
    return 0 if good and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
