//! Programs that change what the runtime relies on: objects of the runtime, values that nothing else keeps alive, and
//! definitions that callers were compiled for. Each ends with a value or an error of Lisp.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};

const STACK: usize = 16 << 20;

/// Collects at every 53rd allocation, which is another one in each iteration of a loop, and overwrites dead objects.
fn stressed() -> GcSettings {
    GcSettings { stress: 53, ..poisoned() }
}

/// Overwrites dead objects.
fn poisoned() -> GcSettings {
    GcSettings { poison: true, limit: 64 << 20, gc_threads: 1, ..GcSettings::default() }
}

/// Evaluates forms in a new Lisp and compares each printed value, or the first line of the error's report.
#[track_caller]
fn expect(settings: GcSettings, forms: &[(&str, &str)]) {
    let (answer, done) = std::sync::mpsc::channel();
    let texts: Vec<String> = forms.iter().map(|(form, _)| (*form).to_owned()).collect();
    let run = move || {
        let range = Reserved::new(64 * SPAN, SPAN).unwrap();
        let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
        let mut lisp = Interpreter::start(settings, memory, STACK - (1 << 20), Vec::new()).unwrap();
        for text in texts {
            let shown = match lisp.evaluate(&text) {
                Ok(shown) => shown.unwrap_or_default(),
                Err(Ended::Error(report)) => report.lines().next().unwrap_or_default().to_owned(),
                Err(other) => format!("{other:?}"),
            };
            answer.send(shown).unwrap();
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
    for (form, wanted) in forms {
        let shown = done.recv().unwrap_or_else(|_| panic!("{form}: the Lisp panicked"));
        assert_eq!(shown, *wanted, "{form}");
    }
    thread.join().unwrap();
}

/// Expects `refused` from each form: it signals an error.
#[track_caller]
fn expect_refused(forms: &[&str]) {
    let wrapped: Vec<String> =
        forms.iter().map(|form| format!("(handler-case (progn {form} 'done) (error () 'refused))")).collect();
    let expected: Vec<(&str, &str)> = wrapped.iter().map(|form| (form.as_str(), "refused")).collect();
    expect(poisoned(), &expected);
}

#[test]
fn runtime_objects_keep_their_class() {
    expect_refused(&[
        "(become object cons)",
        "(become (find-package 'user) object)",
        "(progn (sys:make-thread 1) (become (car (sys:free-threads)) object))",
        "(become (sys:make-mutex-lock) object)",
        "(become (sys:make-cond) object)",
        "(become (sys:make-semaphore) object)",
        "(become (open \"/dev/null\") object)",
        "(become (instantiate hash-table) package)",
        "(become (instantiate hash-table) mutex)",
        "(become (instantiate array) thread)",
    ]);
    expect(
        poisoned(),
        &[
            ("(progn (defclass above :slots (a b)) (defclass below :super above :slots (c)) 1)", "1"),
            (
                "(let ((it (instance below))) (setf (it . b) 7) (become it above) (list (classp it) (it . b)))",
                "(nil 7)",
            ),
        ],
    );
}

#[test]
fn runtime_slots_are_not_set() {
    expect_refused(&[
        "(setslot *package* package 1 99)",
        "(setslot *package* package 'number 99)",
        "(setf (*package* . number) 99)",
        "(setslot (sys:make-mutex-lock) sys::mutex 1 0)",
        "(progn (defmethod package (:renumber (n) (setq number n))) (send *package* :renumber 99))",
        "(progn (compile package :renumber) (send *package* :renumber 99))",
        "(progn (sys:make-thread 1) (setslot (car (sys:free-threads)) thread 7 0))",
    ]);
    expect(
        poisoned(),
        &[
            ("(handler-case (package-name (instantiate package)) (error () 'refused))", "refused"),
            ("(package-name *package*)", "\"USER\""),
        ],
    );
}

#[test]
fn error_keeps_its_object_alive() {
    let forms = [
        "(dotimes (i (vector 7)))",
        "(funcall (vector 7))",
        "((vector 7) . nothing)",
        "(elt (vector 7) (vector 8))",
    ];
    let loops: Vec<String> = forms
        .iter()
        .map(|form| {
            let object = format!("(handler-case {form} (error (e) (error-object e)))");
            format!("(dotimes (i 200 'fine) (prin1-to-string {object}))")
        })
        .collect();
    let expected: Vec<(&str, &str)> = loops.iter().map(|form| (form.as_str(), "fine")).collect();
    expect(stressed(), &expected);
}

#[test]
fn running_form_stays_alive() {
    expect(
        poisoned(),
        &[
            (
                "(handler-case (eval (setq x (list 'progn (list 'car '(progn (rplacd x nil) (sys:gc) 3))))) (error (e) (prin1-to-string (e . form))))",
                "\"(car (progn (rplacd x nil) (system:gc) 3))\"",
            ),
            (
                "(progn (defun again () (setq y (list 'progn (list 'list '(progn (rplacd y nil) (sys:gc) 3) '(car 4)))) (eval y)) (handler-case (again) (error (e) (prin1-to-string (e . form)))))",
                "\"(car 4)\"",
            ),
        ],
    );
}

#[test]
fn protected_functions_are_kept() {
    expect_refused(&["(compile 'if '(lambda (x) x))", "(fmakunbound 'if)", "(fmakunbound 'quote)"]);
    for change in ["(compile 'append '(lambda (&rest l) nil))", "(fmakunbound 'append)"] {
        expect(
            poisoned(),
            &[(&format!("(progn {change} nil)"), "nil"), ("(rotate-list '(1 2 3))", "(2 3 1)")],
        );
    }
    // `setfunc` changes the library on purpose.
    let change = "(let ((old #'append)) (setfunc 'append #'(lambda (&rest l) 'mine)) (prog1 (rotate-list '(1 2 3)) (setfunc 'append old)))";
    expect(poisoned(), &[(change, "mine"), ("(rotate-list '(1 2 3))", "(2 3 1)")]);
}

#[test]
fn empty_matrices_are_operands() {
    let mut operands = Vec::new();
    for rows in 0..4 {
        for columns in 0..4 {
            if rows * columns == 0 {
                operands.push(format!("(make-matrix {rows} {columns})"));
            }
        }
    }
    operands.extend((0..4).map(|size| format!("(make-array {size} :element-type :float)")));
    operands.extend(["(list)", "(vector)", "(make-matrix 3 3)"].map(str::to_owned));
    let list = operands.join(" ");
    let functions = "'transform 'm* 'm+ 'm- 'transpose 'sv-solve 'sv-decompose 'qr-decompose 'ql-decompose \
         'pseudo-inverse 'pseudo-inverse2 'inverse-matrix 'matrix-determinant 'lu-decompose 'lu-determinant \
         'simultaneous-equation 'lu-decompose2 'rotm3* 'copy-matrix 'replace-matrix 'matrix-row 'matrix-column \
         'set-matrix-row 'rotation-angle 'rpy-angle 'euler-angle 'vmean 'variance 'covariance 'vector-array-mean \
         'vector-array-variance 'vector-array-max-min 'fvector-replace 'c-matrix-row 'v+ 'v- 'v. 'v* 'v= 'v< 'vmin \
         'vmax 'norm 'norm2 'normalize-vector 'distance 'homo2normal 'homogenize 'triangle 'vector-angle";
    let all = format!(
        "(progn (defun operands () (list {list}))
           (dolist (f (list {functions}) 'fine)
             (when (fboundp f)
               (dolist (a (operands))
                 (handler-case (funcall f a) (error () nil))
                 (dolist (b (operands))
                   (handler-case (funcall f a b) (error () nil))
                   (dolist (c (operands)) (handler-case (funcall f a b c) (error () nil))))))))"
    );
    expect(
        poisoned(),
        &[
            ("(transform (float-vector) (make-matrix 0 3))", "#f(0.0 0.0 0.0)"),
            ("(transform (make-matrix 3 0) (float-vector))", "#f(0.0 0.0 0.0)"),
            ("(handler-case (sv-solve (make-matrix 0 0) (float-vector)) (error () 'refused))", "refused"),
            (&all, "fine"),
        ],
    );
}

#[test]
fn damaged_arrays_build_no_others() {
    expect(
        poisoned(),
        &[
            (
                "(progn (setq a (make-array 1 :fill-pointer 1)) (handler-case (progn (prin1-to-string (remove-if #'(lambda (x) (setf (a . rank) 0) t) a)) 'done) (error () 'refused)))",
                "refused",
            ),
            (
                "(progn (setq a (make-array 3 :fill-pointer 3)) (handler-case (prin1-to-string (remove-if #'(lambda (x) (setf (a . entity) 0) nil) a)) (error () 'refused)))",
                "refused",
            ),
        ],
    );
}

#[test]
fn printed_values_stay_alive() {
    let start = "(progn (defclass b :slots ()) (defmethod b (:prin1 (s &rest r) (funcall *damage*) (sys:gc) (princ \"b\" s))) 1)";
    expect(
        poisoned(),
        &[
            (start, "1"),
            (
                "(progn (setq *damage* #'(lambda () (setf (car l) nil))) (setq l (list (vector (instance b) 1 2))) (prin1-to-string l))",
                "\"(#(b 1 2))\"",
            ),
            (
                "(progn (setq a (make-array '(1 3))) (dotimes (i 3) (setf (aref a 0 i) (list i))) (setf (aref a 0 0) (instance b)) (setq *damage* #'(lambda () (setf (a . entity) nil))) (prin1-to-string a))",
                "\"#2a((b (1) (2)))\"",
            ),
            (
                "(progn (setq l (list (vector (instance b) (list 1 2)))) (setq *damage* #'(lambda () (setf (car l) nil))) (prin1-to-string l))",
                "\"(#(b (1 2)))\"",
            ),
        ],
    );
}

#[test]
fn tables_find_equal_keys() {
    expect(
        poisoned(),
        &[
            (
                "(progn (defclass pair :slots (a b)) (defun pair (x y) (let ((it (instance pair))) (setf (it . a) x (it . b) y) it)) 1)",
                "1",
            ),
            (
                "(let ((h (make-hash-table :test #'equal))) (setf (gethash (pair 1 (list 2)) h) 'found) (setf (gethash (list (pair 1 2)) h) 'inner) (list (equal (pair 1 (list 2)) (pair 1 (list 2))) (gethash (pair 1 (list 2)) h) (gethash (list (pair 1 2)) h) (gethash (list (pair 1 3)) h)))",
                "(t nil inner nil)",
            ),
            (
                "(let ((h (make-hash-table :test #'string=))) (setf (gethash \"ABC\" h) 1) (setf (gethash 'def h) 2) (list (gethash 'abc h) (gethash \"DEF\" h) (gethash \"abc\" h)))",
                "(1 2 nil)",
            ),
            ("(= (sxhash (pair 1 2)) (sxhash (pair 1 2)))", "t"),
            (
                "(let ((h (make-hash-table :test #'equal)) (it (pair 1 nil))) (setf (it . b) it) (setf (gethash it h) 'circular) (gethash it h))",
                "circular",
            ),
        ],
    );
}

#[test]
fn method_of_local_class_is_defined() {
    expect(
        poisoned(),
        &[(
            "(progn (defclass one :slots ()) (defun f (c) (defmethod c (:m () 1))) (compile 'f) (handler-case (progn (f one) (send (instance one) :m)) (error (e) (error-message e))))",
            "1",
        )],
    );
}

#[test]
fn constants_are_not_bound() {
    expect_refused(&[
        "(progv '(t) '(nil) (if t 1 2))",
        "(progv '(:key) '(1) :key)",
        "(progn (defun f () (progv '(t) '(nil) (if t 1 2))) (compile 'f) (f))",
        "(progv '(pi) '(3) pi)",
    ]);
}

#[test]
fn redefined_send_is_called() {
    expect(
        poisoned(),
        &[
            ("(progn (defun f (x) (send x :name)) (compile 'f) (f object))", "object"),
            ("(progn (setf (symbol-function 'send) #'list) (list (f 1) (send 1 2)))", "((1 :name) (1 2))"),
        ],
    );
}

#[test]
fn setf_methods_stay_alive() {
    expect(
        poisoned(),
        &[
            (
                "(progn (defsetf foo (x) (v) (list 'list x v)) (setf (foo (progn (remprop 'foo :setf-method) (sys:gc) 1)) 2))",
                "2",
            ),
            (
                "(progn (setf (get 'bar :setf-update) (list 'lambda '(x v) '(list x v))) (setf (bar (progn (remprop 'bar :setf-update) (sys:gc) 1)) 2))",
                "2",
            ),
        ],
    );
}

#[test]
fn deep_types_are_an_error() {
    expect_refused(&[
        "(let ((type 'integer)) (dotimes (i 1000000) (setq type (list 'not type))) (typep 1 type))",
    ]);
}

#[test]
fn hashes_take_bounded_time() {
    let wide = "(let ((it 1)) (dotimes (i 8 it) (setq it (make-list 16 :initial-element it))))";
    expect(poisoned(), &[(&format!("(integerp (sxhash {wide}))"), "t")]);
}

#[test]
fn reports_of_large_values_are_short() {
    for value in [
        "(make-array '(100 100 100) :initial-element 7)",
        "(make-array 3000000 :element-type :integer)",
        "(make-array 100000000 :element-type :bit)",
        "(make-string 30000000)",
    ] {
        let text =
            format!("(let ((v {value})) (dotimes (i 20 'fine) (handler-case (car v) (error () nil))))");
        expect(poisoned(), &[(&text, "fine")]);
    }
}

#[test]
fn compiled_source_stays_alive() {
    expect(
        poisoned(),
        &[
            (
                "(progn (defmacro m () (rplacd (cdr *b*) nil) (sys:gc) nil) (setq *b* (list nil '(m) (list 'car (list 'quote (list 1 2))))) (compile 'f (cons 'lambda *b*)) (f))",
                "1",
            ),
            (
                "(progn (defmacro n () (rplacd *c* nil) (sys:gc) nil) (setq *c* (list '(n) (list 'car (list 'quote (list 3 4))))) (compile 'g (list 'lambda nil (cons 'progn *c*))) (g))",
                "3",
            ),
            (
                "(progn (defmacro o () (rplacd *d* nil) (sys:gc) nil) (setq *d* (list '(x (o)) (list 'y (list 'list 5)))) (compile 'h (list 'lambda nil (list 'let *d* '(list x y)))) (h))",
                "(nil (5))",
            ),
        ],
    );
}

#[test]
fn known_symbols_stay_alive() {
    expect(
        poisoned(),
        &[
            (
                "(let ((name \"*GC-HOOK*\")) (dolist (p (list-all-packages) 1) (let ((it (find-symbol name p))) (if it (unintern it p)))))",
                "1",
            ),
            ("(progn (dotimes (i 3) (sys:gc)) (prin1-to-string (instantiate object)) 'fine)", "fine"),
            ("(handler-case (car 1) (error () 'refused))", "refused"),
        ],
    );
}

#[test]
fn types_agree_with_predicates() {
    expect(
        poisoned(),
        &[(
            "(list (typep 5 'bignum) (bignump 5) (typep (expt 10 30) 'bignum) (bignump (expt 10 30)) (typep 5 'integer))",
            "(nil nil t t t)",
        )],
    );
}
