#!/usr/bin/env python3
"""Compares Largesse's Lisp with EusLisp on random forms: interpreted, compiled, and the answers of `eusgl`.

usage: euslisp.py [FORMS [SEED]]

Exits with 1 if an answer differs without a decision in docs/lisp.md (section "Differences from EusLisp"), with 0 and a
note if eusgl is not installed. Prints a summary, and each difference with its form. SEED is random unless given.
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "fronts/lisp/tests"
# Forms that one process evaluates.
BATCH = 500


class Forms:
    """Makes forms of a type, each within a depth. Floats are multiples of 1/4 below 2^20: EusLisp keeps two bits less."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, choices, depth):
        return self.random.choice(choices)(depth - 1)

    def form(self):
        kinds = [self.integer, self.number, self.list, self.string, self.vector, self.truth, self.bits, self.symbol]
        return self.random.choice(kinds)(self.random.randint(1, 4))

    def integer(self, depth):
        if depth <= 0:
            wide = self.random.random() < 0.1
            return str(self.random.randint(-(2**80), 2**80) if wide else self.random.randint(-20, 20))
        i, l, s, v = self.integer, self.list, self.string, self.vector
        return self.one([
            lambda d: f"(+ {i(d)} {i(d)})",
            lambda d: f"(- {i(d)} {i(d)} {i(d)})",
            lambda d: f"(* {i(d)} {self.small()})",
            lambda d: f"(mod {self.word()} {self.random.randint(1, 9)})",
            lambda d: f"(abs {i(d)})",
            lambda d: f"(1+ {i(d)})",
            lambda d: f"(1- {i(d)})",
            lambda d: f"(logand {self.word()} {self.word()})",
            lambda d: f"(logior {self.word()} {self.word()})",
            lambda d: f"(logxor {self.word()} {self.word()})",
            lambda d: f"(ash {self.small()} {self.random.randint(-4, 20)})",
            lambda d: f"(ldb {self.random.randint(0, 2**30)} {self.random.randint(0, 9)} {self.random.randint(1, 8)})",
            lambda d: f"(list-length {l(d)})",
            lambda d: f"(length {self.random.choice([l, s, v])(d)})",
            lambda d: f"(count {self.small()} {self.random.choice([l, v])(d)})",
            lambda d: f"(or (position {self.small()} {self.random.choice([l, v])(d)}) {i(d)})",
            lambda d: f"(if {self.truth(d)} {i(d)} {i(d)})",
            lambda d: f"(let ((x {i(d)}) (y {i(d)})) (+ x (* 2 y)))",
            lambda d: f"(let ((sum 0)) (dotimes (k {self.random.randint(0, 5)} sum) (incf sum (+ k {self.small()}))))",
            lambda d: f"(let ((sum 0)) (dolist (x {l(d)} sum) (if (numberp x) (incf sum x))))",
            lambda d: f"(apply #'+ {i(d)} (remove-if-not #'numberp {l(d)}))",
            lambda d: f"(reduce #'+ (cons {i(d)} (remove-if-not #'numberp {l(d)})))",
            lambda d: f"(catch 'out (throw 'out {i(d)}) 7)",
            lambda d: f"(block nil (dolist (x {l(d)}) (if (consp x) (return 1))) {i(d)})",
            lambda d: f"(funcall #'(lambda (a &optional (b 2)) (- a b)) {i(d)})",
            lambda d: f"(floor {self.float(d)})",
            lambda d: f"(truncate {self.float(d)})",
            lambda d: f"(ceiling {self.float(d)})",
            lambda d: f"(case {self.small()} ((1 2 3) 10) (4 20) (t {i(d)}))",
            lambda d: f"(max {self.small()} {self.small()})",
            lambda d: f"(char {s(d)} {self.random.randint(0, 3)})",
        ], depth)

    def word(self):
        """An integer of 32 bits: EusLisp's logical functions keep the lowest 64 bits of larger ones."""
        return self.random.randint(-(2**31), 2**31)

    def small(self):
        return self.random.randint(-9, 9)

    def float(self, depth):
        if depth <= 0:
            return str(self.random.randint(-400, 400) / 4)
        return self.one([
            lambda d: f"(+ {self.float(d)} {self.float(d)})",
            lambda d: f"(* {self.float(0)} {self.small()})",
            lambda d: f"(- {self.float(d)})",
            lambda d: f"(float {self.small()})",
            lambda d: f"(abs {self.float(d)})",
            lambda d: f"(aref (float-vector 1.5 2.5 {self.float(d)}) {self.random.randint(0, 3)})",
        ], depth)

    def number(self, depth):
        return self.random.choice([self.integer, self.float])(depth)

    def item(self):
        return self.random.choice(["a", "b", "c", ":k", "nil", "t", '"s"', str(self.small()), "(1 2)", "(a . b)", "1.5"])

    def list(self, depth):
        if depth <= 0:
            return "'(" + " ".join(self.item() for _ in range(self.random.randint(0, 5))) + ")"
        l, i = self.list, self.integer
        n = lambda: self.random.randint(0, 4)
        return self.one([
            lambda d: f"(cons {self.any(d)} {l(d)})",
            lambda d: f"(list {self.any(d)} {self.any(d)})",
            lambda d: f"(append {l(d)} {l(d)})",
            lambda d: f"(reverse {l(d)})",
            lambda d: f"(nreverse (copy-seq {l(d)}))",
            lambda d: f"(cdr {l(d)})",
            lambda d: f"(nthcdr {n()} {l(d)})",
            lambda d: f"(butlast {l(d)})",
            lambda d: f"(last {l(d)})",
            lambda d: f"(subseq {l(d)} {n()} {n()})",
            lambda d: f"(member {self.quoted()} {l(d)})",
            lambda d: f"(remove {self.quoted()} {l(d)})",
            lambda d: f"(remove-if #'consp {l(d)})",
            lambda d: f"(remove-duplicates {l(d)})",
            lambda d: f"(substitute {self.quoted()} {self.quoted()} {l(d)})",
            lambda d: f"(mapcar #'(lambda (x) (list x {self.small()})) {l(d)})",
            lambda d: f"(mapcan #'(lambda (x) (if (atom x) (list x))) {l(d)})",
            lambda d: f"(sort (remove-if-not #'numberp {l(d)}) #'<)",
            lambda d: f"(union {self.integers()} {self.integers()})",
            lambda d: f"(intersection {self.integers()} {self.integers()})",
            lambda d: f"(set-difference {self.integers()} {self.integers()})",
            lambda d: f"(adjoin {self.quoted()} {l(d)})",
            lambda d: f"(coerce {self.vector(d)} cons)",
            lambda d: f"(let ((x {l(d)}) (y nil)) (while x (push (pop x) y)) y)",
            lambda d: f"(let (all) (dotimes (k {n()}) (push (+ k {i(0)}) all)) all)",
            lambda d: f"(copy-tree {l(d)})",
            lambda d: f"(subst {self.quoted()} {self.quoted()} {l(d)})",
            lambda d: f"(list-insert {self.quoted()} {n()} {l(d)})",
            lambda d: f"(fill (copy-seq {l(d)}) {self.small()} :start {n()})",
            lambda d: f"(replace (copy-seq {l(d)}) {l(d)} :start1 {n()})",
            lambda d: f"(let ((h (make-hash-table))) (dolist (x '(a b c)) (setf (gethash x h) {i(d)})) (list (gethash 'a h) (gethash 'z h)))",
            lambda d: f"(flatten {l(d)})",
            lambda d: f"(pairlis '(a b) '({self.small()} {self.small()}))",
            lambda d: f"(concatenate cons {l(d)} {self.vector(d)})",
            lambda d: f"(labels ((down (n) (if (<= n 0) nil (cons n (down (- n 1)))))) (down {n()}))",
            lambda d: f"(if {self.truth(d)} {l(d)} {l(d)})",
            lambda d: f"(assoc {self.quoted()} '((a . 1) (b . 2) (:k . 3)))",
        ], depth)

    def integers(self):
        return "'(" + " ".join(str(self.random.randint(0, 5)) for _ in range(self.random.randint(0, 5))) + ")"

    def quoted(self):
        return "'" + self.item()

    def any(self, depth):
        return self.random.choice([self.integer, self.list, self.string, self.symbol])(depth)

    def string(self, depth):
        if depth <= 0:
            return '"' + "".join(self.random.choice("abcXYZ 19-") for _ in range(self.random.randint(0, 6))) + '"'
        s = self.string
        n = lambda: self.random.randint(0, 3)
        return self.one([
            lambda d: f"(string-upcase {s(d)})",
            lambda d: f"(string-downcase {s(d)} :start {n()})" if self.random.random() < 0.3 else f"(string-downcase {s(d)})",
            lambda d: f"(concatenate string {s(d)} {s(d)})",
            lambda d: f"(subseq {s(d)} 0 {n()})",
            lambda d: f"(reverse {s(d)})",
            lambda d: f"(format nil \"~d ~a ~s\" {self.integer(d)} {s(d)} {s(d)})",
            lambda d: f"(format nil \"~4d|~4x|~a\" {self.random.randint(0, 999)} {self.random.randint(0, 999)} {self.list(d)})",
            lambda d: f"(prin1-to-string {self.list(d)})",
            lambda d: f"(princ-to-string {self.list(d)})",
            lambda d: f"(string-trim \" a\" {s(d)})",
            lambda d: f"(string {self.small()})",
            lambda d: f"(substitute #\\x #\\a {s(d)})",
            lambda d: f"(remove #\\a {s(d)})",
            lambda d: f"(symbol-name 'abc)",
            lambda d: f"(fill (copy-seq {s(d)}) #\\z)",
            lambda d: f"(map string #'char-upcase {s(d)})",
        ], depth)

    def vector(self, depth):
        if depth <= 0:
            items = " ".join(str(self.small()) for _ in range(self.random.randint(0, 5)))
            floats = " ".join(str(self.random.randint(-40, 40) / 4) for _ in range(self.random.randint(1, 4)))
            return self.random.choice([f"(vector {items})", f"(integer-vector {items})", f"#f({floats})", f"#({items})"])
        v = self.vector
        n = lambda: self.random.randint(0, 3)
        return self.one([
            lambda d: f"(copy-seq {v(d)})",
            lambda d: f"(reverse {v(d)})",
            lambda d: f"(nreverse (copy-seq {v(d)}))",
            lambda d: f"(subseq {v(d)} 0 {n()})",
            lambda d: f"(fill (copy-seq {v(d)}) {self.small()})",
            lambda d: f"(replace (copy-seq {v(d)}) (vector {self.small()} {self.small()}))",
            lambda d: f"(concatenate vector {v(d)} {v(d)})",
            lambda d: f"(coerce {self.integers()} vector)",
            lambda d: f"(map vector #'1+ {v(d)})",
            lambda d: f"(remove {self.small()} {v(d)})",
            lambda d: f"(v+ #f({self.float(0)} 1.0) (float-vector {self.float(d)} 2.0))",
            lambda d: f"(scale {self.random.choice(['0.5', '2.0', '4.0'])} #f(1.0 {self.float(0)}))",
            lambda d: f"(sort (copy-seq {v(d)}) #'<)",
        ], depth)

    def truth(self, depth):
        return self.one([
            lambda d: f"(> {self.number(d)} {self.number(d)})",
            lambda d: f"(= {self.number(d)} {self.number(d)})",
            lambda d: f"(<= {self.integer(d)} {self.integer(d)} {self.integer(d)})",
            lambda d: f"(equal {self.any(d)} {self.any(d)})",
            lambda d: f"(eq {self.quoted()} {self.quoted()})",
            lambda d: f"(null {self.list(d)})",
            lambda d: f"(and {self.truth(d - 1)} {self.list(d)})",
            lambda d: f"(or {self.truth(d - 1)} {self.list(d)})",
            lambda d: f"(not {self.truth(d - 1)})",
            lambda d: f"(evenp {self.integer(d)})",
            lambda d: f"(minusp {self.number(d)})",
            lambda d: f"(string= {self.string(d)} {self.string(d)})",
            lambda d: f"(string< {self.string(d)} {self.string(d)})",
            lambda d: f"(every #'atom {self.list(d)})",
            lambda d: f"(some #'consp {self.list(d)})",
            lambda d: f"(subsetp {self.integers()} {self.integers()})",
            lambda d: f"(logbitp {self.random.randint(0, 9)} {self.small()})",
            lambda d: f"(substringp {self.string(0)} {self.string(d)})",
            lambda d: f"(numberp {self.any(d)})",
        ], max(depth, 1))

    def bits(self, depth):
        row = lambda: "#*" + "".join(self.random.choice("01") for _ in range(8))
        return self.random.choice([
            f"(bit-and {row()} {row()})", f"(bit-ior {row()} {row()})", f"(bit-xor {row()} {row()})",
            f"(bit-not {row()})", f"(reverse {row()})", f"(count 1 {row()})", f"(position 1 {row()})",
            f"(subseq {row()} {self.random.randint(0, 4)} {self.random.randint(4, 8)})",
            f"(copy-seq {row()})", f"(fill (copy-seq {row()}) {self.random.randint(0, 1)})",
            f"(replace (copy-seq {row()}) {row()} :start1 {self.random.randint(0, 7)})",
        ])

    def symbol(self, depth):
        return self.random.choice([
            "'a", "'b", ":key", "(car '(x y))", "(intern \"ABC\")", "(type-of-nothing)", "(nth 1 '(p q))",
            "(get 'no-such :prop)", "(cadr '(1))", "(let ((x 'v)) x)", "(symbol-name :key)", "undefined-variable",
        ])


def answers(command, folder, forms, marks):
    """The answers of a Lisp, `marks` lines a form; a form that ends the process has the answer `crash`."""
    all_answers, start = [], 0
    while start < len(forms):
        cases = folder / "cases.l"
        cases.write_text("".join(form + "\n" for form in forms[start:]))
        environment = dict(os.environ, CASES=str(cases), EUSDIR=os.environ.get("EUSDIR", "/usr/share/euslisp"))
        try:
            run = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, timeout=120)
            out = run.stdout
        except subprocess.TimeoutExpired as late:
            out = late.stdout or b""
        lines = [line[3:] for line in out.decode("latin-1").split("\n") if line.startswith("=> ")]
        whole = len(lines) // marks
        all_answers += [tuple(lines[i * marks:(i + 1) * marks]) for i in range(whole)]
        start += whole
        if start < len(forms):
            all_answers.append(("crash",) * marks)
            start += 1
    return all_answers


def words(answer):
    return answer.replace("(", " ( ").replace(")", " ) ").split()


def same(a, b):
    """Word by word; words with a decimal point as numbers, as EusLisp's floats lack two bits."""
    a, b = words(a), words(b)
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x == y:
            continue
        if not ("." in x and "." in y):
            return False
        try:
            if abs(float(x) - float(y)) > 1e-9 * max(1.0, abs(float(y))):
                return False
        except ValueError:
            return False
    return True


def same_numbers(a, b):
    """Whether two answers are the same but for integers and floats of one value."""
    number = lambda word: float(word) if re.fullmatch(r"-?\d+(\.\d+e[-+]\d+)?", word) else word
    return [number(word) for word in words(a)] == [number(word) for word in words(b)]


FLOAT = re.compile(r"-?\d\.\d+e[-+]\d+")
# An integer above 62 bits.
WIDE = re.compile(r"-?\d{19,}")


def decided(form, ours, theirs):
    """Why an answer may differ: the decision in docs/lisp.md; none for a fault."""
    if theirs in ("error", "crash") and ours not in ("error", "crash"):
        return "answers where EusLisp has an error"
    if "sort" in form and same_numbers(ours, theirs):
        return "keep the order of equal numbers when sorting"
    if WIDE.search(form):
        if re.search(r"[<>]|sort", form) and sorted(words(ours)) == sorted(words(theirs)):
            return "compare integers above 62 bits by their sign, too"
        added = re.sub(r"-?\d\.\d+e\+\d+", "WIDE", ours, flags=re.I) == WIDE.sub("WIDE", theirs)
        # EusLisp leaves out the integer instead, and the rest of the sum is a float.
        left_out = re.fullmatch(FLOAT, ours) and abs(float(ours)) >= 2**62 and re.fullmatch(FLOAT, theirs)
        if added or left_out:
            return "add floats to integers above 62 bits"
    if ours == "error" and re.search(r"\((apply|sort) ", form) and "remove-if" in form:
        return "refuse a value that is no list, where EusLisp takes it as an empty one"
    return None


def compare(forms, lisp, folder):
    ours = answers([str(lisp), str(TESTS / "compare.l")], folder, forms, 2)
    theirs = answers(["eusgl", "record.l"], folder, forms, 1)
    decisions, faults = {}, []
    for form, (interpreted, compiled), (other,) in zip(forms, ours, theirs):
        if interpreted != compiled:
            faults.append((form, f"interpreted {interpreted}", f"compiled    {compiled}"))
        elif not same(interpreted, other):
            why = decided(form, interpreted, other)
            if why:
                decisions[why] = decisions.get(why, 0) + 1
            else:
                faults.append((form, f"Largesse {interpreted}", f"EusLisp  {other}"))
    return decisions, faults


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    if not shutil.which("eusgl"):
        print("euslisp: eusgl is not installed (apt-get install euslisp): nothing was compared")
        return 0
    lisp = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/largesse-lisp"
    maker, decisions, faults, done = Forms(seed), {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        while done < count:
            forms = [re.sub(r"\s+", " ", maker.form()) for _ in range(min(BATCH, count - done))]
            more, wrong = compare(forms, lisp, pathlib.Path(folder))
            for why, number in more.items():
                decisions[why] = decisions.get(why, 0) + number
            faults += wrong
            done += len(forms)
            if len(faults) > 20:
                break
    for fault in faults[:20]:
        print("\n  ".join(fault))
    said = "".join(f", {number} {why}" for why, number in sorted(decisions.items()))
    print(f"euslisp: {done} random forms of seed {seed}: {len(faults)} differ{said}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
