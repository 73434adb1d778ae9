//! Random programs that use every entry to and exit from a function in the dialect. They terminate, and create no
//! cycles.

/// Forms that every program needs.
pub(crate) const PRELUDE: &str = "
(defvar *s* 1) (defvar *u* 'u) (defvar *kept* nil) (defvar *log* nil)
(setq *print-level* 4 *print-length* 8)
(defun note (x) (if (< (length *log*) 100) (push x *log*)) x)
(defun num (x) (if (numberp x) x 0))
(defun keyed (a &optional (b *s*) &rest r &key (k a) (l k given)) (list a b r k l given))
(defmacro twice (x) (list 'list x x))
(defclass box :super propertied-object :slots (x y))
(setq *box* (instantiate box))
";

/// Calls of a program, with its notes.
pub(crate) const CALLS: [&str; 4] = [
    "(list (program 1 '(2 3)) *log*)",
    "(list (program nil 2.5) *log*)",
    "(list (program 'a 4) *log*)",
    "(list (send *box* :run '(1) 2) *log*)",
];

const VARIABLES: [&str; 6] = ["p", "q", "r", "v", "w", "z"];

pub(crate) struct Programs<C> {
    choices: C,
    variables: Vec<&'static str>,
    /// Loop counters, which programs only read.
    counters: Vec<String>,
    blocks: Vec<String>,
    tags: Vec<String>,
    functions: Vec<String>,
    made: usize,
}

impl<C: Iterator<Item = u8>> Programs<C> {
    pub(crate) fn new(choices: C) -> Programs<C> {
        Programs {
            choices,
            variables: Vec::new(),
            counters: Vec::new(),
            blocks: Vec::new(),
            tags: Vec::new(),
            functions: Vec::new(),
            made: 0,
        }
    }

    /// Returns definitions of `program` and of a method `:run` of `box`.
    pub(crate) fn program(&mut self) -> [String; 2] {
        self.variables = vec!["a", "b"];
        let body = self.body(5);
        let function = format!("(defun program (a b) {body})");
        self.variables = vec!["a", "b", "x", "y"];
        let (default, body) = (self.expression(1), self.body(4));
        [function, format!("(defmethod box (:run (a &optional (b {default})) {body}))")]
    }

    fn choice(&mut self, of: usize) -> usize {
        usize::from(self.choices.next().unwrap_or(0)) % of
    }

    fn pick(&mut self, from: &[String]) -> Option<String> {
        if from.is_empty() { None } else { Some(from[self.choice(from.len())].clone()) }
    }

    fn name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}{}", self.made)
    }

    fn variable(&mut self) -> &'static str {
        let variables = self.variables.clone();
        variables[self.choice(variables.len())]
    }

    /// Runs `inside` with additional variables in scope.
    fn with<R>(&mut self, names: &[&'static str], inside: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.variables.len();
        self.variables.extend(names);
        let done = inside(self);
        self.variables.truncate(before);
        done
    }

    fn new_variable(&mut self) -> &'static str {
        VARIABLES[self.choice(VARIABLES.len())]
    }

    fn body(&mut self, depth: usize) -> String {
        let (first, second) = (self.expression(depth), self.expression(depth));
        format!("(note {first}) {second}")
    }

    fn atom(&mut self) -> String {
        match self.choice(10) {
            0 => "nil".to_owned(),
            1 => "'sym".to_owned(),
            2 => "most-positive-fixnum".to_owned(),
            3 => "2.5".to_owned(),
            4 => "*s*".to_owned(),
            5 => "'(1 (2) 3)".to_owned(),
            6 => self.counters.last().cloned().unwrap_or_else(|| "7".to_owned()),
            _ => self.variable().to_owned(),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.atom();
        }
        let d = depth - 1;
        match self.choice(44) {
            0 | 1 => {
                let head = ["+", "-", "cons", "list", "eq", "<", ">=", "eql"][self.choice(8)];
                let (a, b) = (self.expression(d), self.expression(d));
                format!("({head} {a} {b})")
            }
            2 => {
                let head = ["car", "cdr", "1+", "not", "consp", "cadr", "num", "identity"][self.choice(8)];
                format!("({head} {})", self.expression(d))
            }
            3 => format!("(if {} {} {})", self.expression(d), self.expression(d), self.expression(d)),
            4 => format!(
                "(cond ({} {}) ({}) (t {}))",
                self.expression(d),
                self.expression(d),
                self.expression(d),
                self.expression(d)
            ),
            5 => format!("(and {} (or {} {}))", self.expression(d), self.expression(d), self.expression(d)),
            6 => format!(
                "(case {} (1 {}) ((sym nil 2.5) {}) (t 'other))",
                self.expression(d),
                self.expression(d),
                self.expression(d)
            ),
            7 => format!("(prog1 {} {})", self.expression(d), self.expression(d)),
            8 | 9 => {
                let (v, w) = (self.new_variable(), self.new_variable());
                let (first, second) = (self.expression(d), self.expression(d));
                let body = self.with(&[v, w], |it| it.body(d));
                let head = if v == w { "let*" } else { "let" };
                format!("({head} (({v} {first}) ({w} {second})) {body})")
            }
            10 => {
                let (v, first) = (self.new_variable(), self.expression(d));
                let second = self.with(&[v], |it| it.expression(d));
                let body = self.with(&[v], |it| it.body(d));
                format!("(let* (({v} {first}) (*s* {second}) (*u* *s*)) {body})")
            }
            11 | 12 => format!("(setq {} {})", self.variable(), self.expression(d)),
            13 => format!("(incf {} {})", self.variable(), self.expression(d)),
            14 => format!("(push {} {})", self.expression(d), self.variable()),
            15 => format!("(pop {})", self.variable()),
            16 => format!("(setf (car {}) (num {}))", self.expression(d), self.expression(d)),
            17 => format!("(incf (cadr {}) {})", self.expression(d), self.expression(d)),
            18 => format!("(psetq {} {} *u* {})", self.variable(), self.expression(d), self.expression(d)),
            19 => {
                let i = self.name("i");
                self.counters.push(i.clone());
                let body = self.body(d);
                self.counters.pop();
                format!("(dotimes ({i} 3 {i}) {body})")
            }
            20 => {
                let (v, list) = (self.new_variable(), self.expression(d));
                let body = self.with(&[v], |it| it.body(d));
                format!("(dolist ({v} {list}) {body})")
            }
            21 => {
                let (i, v, w) = (self.name("i"), "v", "w");
                let (first, second) = (self.expression(d), self.expression(d));
                self.counters.push(i.clone());
                let (step, result, body) =
                    self.with(&[v, w], |it| (it.expression(d), it.expression(d), it.body(d)));
                self.counters.pop();
                let head = ["do", "do*"][self.choice(2)];
                format!(
                    "({head} (({i} 0 (1+ {i})) ({v} {first} {step}) ({w} {second})) ((> {i} 2) {result}) {body})"
                )
            }
            22 => {
                let name = self.name("block");
                self.blocks.push(name.clone());
                let body = self.body(d);
                self.blocks.pop();
                format!("(block {name} {body})")
            }
            23 | 24 => match self.pick(&self.blocks.clone()) {
                Some(block) => format!("(return-from {block} {})", self.expression(d)),
                None => format!("(return {})", self.expression(d)),
            },
            25 => {
                let tag = ["one", "two"][self.choice(2)];
                format!("(catch '{tag} {})", self.body(d))
            }
            26 => {
                let tag = ["one", "two", "none"][self.choice(3)];
                format!("(throw '{tag} {})", self.expression(d))
            }
            27 | 28 => format!("(unwind-protect {} {})", self.expression(d), self.body(d)),
            29 => {
                let (n, tag) = (self.name("n"), self.name("tag"));
                self.counters.push(n.clone());
                self.tags.push(format!("(if (< {n} 3) (go {tag}))"));
                let (first, second) = (self.body(d), self.body(d));
                let again = format!("(if (< {n} 2) (go {tag}))");
                self.tags.pop();
                self.counters.pop();
                format!(
                    "(let (({n} 0)) (tagbody {tag} (setq {n} (+ {n} 1)) (note {n}) {first} {again} 8 {second}))"
                )
            }
            30 => self.pick(&self.tags.clone()).unwrap_or_else(|| "(go nowhere)".to_owned()),
            31 | 32 => {
                let v = self.new_variable();
                let (default, argument) = (self.expression(d), self.expression(d));
                let body = self.with(&[v, "o"], |it| it.body(d));
                let more = ["", " 5", " 5 6"][self.choice(3)];
                format!("(funcall #'(lambda ({v} &optional (o {default})) {body}) {argument}{more})")
            }
            33 => {
                let v = self.new_variable();
                let list = self.expression(d);
                let body = self.with(&[v], |it| it.expression(d));
                format!("(mapcar #'(lambda ({v}) {body}) (list {list} 2))")
            }
            34 => {
                let (f, v) = (self.name("f"), self.new_variable());
                let body = self.with(&[v], |it| it.body(d));
                self.functions.push(f.clone());
                let rest = self.body(d);
                self.functions.pop();
                format!("(flet (({f} ({v}) {body})) {rest} ({f} {}))", self.expression(d))
            }
            35 => match self.pick(&self.functions.clone()) {
                Some(f) => format!("({f} {})", self.expression(d)),
                None => format!("(keyed {} :k {})", self.expression(d), self.expression(d)),
            },
            36 => {
                let (f, g) = (self.name("f"), self.name("g"));
                let (first, second) = self.with(&["v"], |it| (it.expression(d), it.expression(d)));
                format!(
                    "(labels (({f} (n v) (if (< n 1) {first} ({g} (- n 1) {second}))) ({g} (n v) (note v) ({f} n v))) ({f} 2 {}))",
                    self.expression(d)
                )
            }
            37 | 38 => {
                let protected = self.expression(d);
                let class = ["error", "type-error", "control-error"][self.choice(3)];
                format!(
                    "(handler-case {protected} ({class} (c) (note (error-message c)) {}))",
                    self.expression(d)
                )
            }
            39 => format!("(progv '(*s* *u*) (list {}) {})", self.expression(d), self.body(d)),
            40 => {
                let body = self.with(&["v", "w"], |it| it.body(d));
                format!("(multiple-value-bind (v w) {} {body})", self.expression(d))
            }
            41 => format!("(macrolet ((m (x) (list 'cons x (list 'twice x)))) (m {}))", self.expression(d)),
            42 => {
                let closure = self.body(d);
                format!(
                    "(progn (setq *kept* #'(lambda () {closure})) (note {}) (funcall *kept*))",
                    self.expression(d)
                )
            }
            _ => {
                let head = ["no-such-function", "keyed", "note", "elt"][self.choice(4)];
                format!("({head} {} {})", self.expression(d), self.expression(d))
            }
        }
    }
}
