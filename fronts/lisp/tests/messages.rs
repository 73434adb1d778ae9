//! Reports of errors: they name the file, the line and the form that failed, never a form of the past.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::path::PathBuf;

const STACK: usize = 4 << 20;

/// Runs `f` with a new Lisp with a heap of 64 MiB.
fn with_lisp<R: Send>(f: impl FnOnce(&mut Interpreter) -> R + Send) -> R {
    std::thread::scope(|scope| {
        let run = || {
            let range = Reserved::new(128 * SPAN, SPAN).unwrap();
            let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
            let settings = GcSettings { limit: 64 << 20, ..GcSettings::default() };
            f(&mut Interpreter::start(settings, memory, STACK - (64 << 10), Vec::new()).unwrap())
        };
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

/// Returns the report of the error that ends a text.
fn report(text: &str) -> String {
    with_lisp(|lisp| match lisp.evaluate(text) {
        Err(Ended::Error(report)) => report,
        other => panic!("{text}: {other:?}"),
    })
}

/// Returns the report of the error that ends a file with these lines, and the path of the file.
fn report_of_file(name: &str, text: &str) -> (String, String) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("messages-{name}.l"));
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    let report = with_lisp(|lisp| match lisp.load(&path) {
        Err(Ended::Error(report)) => report,
        other => panic!("{text}: {other:?}"),
    });
    (report, path)
}

#[test]
fn special_forms_are_named_in_their_own_errors() {
    for (text, form) in [
        ("(print 1) (dotimes (i 'a) 2)", "(dotimes (i 'a) 2)"),
        ("(print 1) (dolist (i 5) 2)", "(dolist (i 5) 2)"),
        ("(print 1) (setf (sin 3) 2)", "(setf (sin 3) 2)"),
        ("(print 1) (incf (car 5))", "(incf (car 5))"),
        ("(print 1) (if unbound-x 1)", "unbound-x"),
        ("(print 1) (+ 1 unbound-x)", "unbound-x"),
        ("(print 1) (return-from nowhere 1)", "(return-from nowhere 1)"),
    ] {
        let report = report(text);
        assert!(report.contains(&format!("\n  in {form}\n")), "{text}:\n{report}");
    }
}

#[test]
fn unbound_variable_at_top_level_names_no_call() {
    let report = report("(print 1) unbound-x");
    assert_eq!(report, "unbound-variable: unbound variable unbound-x\n  in unbound-x");
}

#[test]
fn reader_errors_name_file_and_line() {
    let (report, path) = report_of_file("reader", "(print 1)\n\n(print 'a\n  #<bad>)\n");
    assert!(report.starts_with("reader-error: "), "{report}");
    assert!(report.ends_with(&format!("\n  at {path}:3")), "{report}");
    assert!(!report.contains("print 1"), "{report}");
}

#[test]
fn unclosed_form_names_the_line_where_it_begins() {
    let (report, path) = report_of_file("unclosed", "(print 1)\n(defun f (x)\n  (list x\n\n");
    let expected = format!("reader-error: the input ends inside a form that begins in line 2\n  at {path}:2");
    assert_eq!(report, expected);
}

#[test]
fn errors_in_a_file_name_the_line_of_their_form() {
    let (report, path) = report_of_file("call", "(setq a 1)\n\n(defun f (x) (car x))\n(f\n 3)\n");
    assert!(report.contains("\n  in (car x)\n"), "{report}");
    assert!(report.contains(&format!("\n  at {path}:4\n")), "{report}");
}

#[test]
fn missing_file_and_folder_are_named_alone() {
    let missing = with_lisp(|lisp| lisp.load("no-such-file").unwrap_err());
    assert_eq!(
        missing,
        Ended::Error("io-error: no-such-file: no such file, also not as no-such-file.l".into())
    );
    let folder = with_lisp(|lisp| lisp.load("/tmp").unwrap_err());
    assert_eq!(folder, Ended::Error("io-error: /tmp is a folder, not a file".to_owned()));
}

#[test]
fn stack_overflow_shows_its_forms() {
    let report = report("(defun deep (n) (+ 1 (deep n))) (deep 1)");
    assert!(report.starts_with("stack-overflow: stack overflow\n"), "{report}");
    assert!(report.contains("at (deep n)"), "{report}");
}

#[test]
fn out_of_memory_names_request_and_limit() {
    let report = report("(make-array 100000000)");
    let message = "out-of-memory: out of memory: 762.9 MiB requested, the heap's limit is 64.0 MiB\n";
    assert!(report.starts_with(message), "{report}");
    let caught = with_lisp(|lisp| {
        lisp.evaluate("(handler-case (make-array 100000000) (error (e) (error-message e)))").unwrap()
    });
    assert!(caught.unwrap().contains("762.9 MiB requested"));
    assert!(self::report("(make-array 99999999999999999999)").contains("at most 61 bits"));
}

#[test]
fn errors_of_threads_that_nobody_waits_for_are_printed() {
    let said = with_lisp(|lisp| {
        let program = "
            (setq *said* (make-string-output-stream) *error-output* *said*)
            (sys:make-thread 1)
            (sys:thread-no-wait #'(lambda () (error \"lost\")))
            (while (null (sys:free-threads)) (unix:usleep 1000))
            (get-output-stream-string *said*)";
        lisp.evaluate(program).unwrap().unwrap()
    });
    assert!(said.contains("simple-error: lost"), "{said}");
}

#[test]
fn gc_pauses_lists_lengths_that_occurred() {
    let counts = with_lisp(|lisp| {
        lisp.evaluate("(sys:gc) (remove-if #'plusp (mapcar #'cdr (sys:gc-pauses)))").unwrap()
    });
    assert_eq!(counts.unwrap(), "nil");
}

#[test]
fn extra_parenthesis_is_told() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("messages-extra.l");
    std::fs::write(&path, "(setq a 1)\n(setq b 2))\n(setq c 3)\n").unwrap();
    let load = format!("(load \"{}\")", path.display());
    let said = with_lisp(|lisp| {
        lisp.evaluate("(setq *said* (make-string-output-stream) *error-output* *said*)").unwrap();
        lisp.evaluate(&load).unwrap();
        lisp.evaluate("(list c (get-output-stream-string *said*))").unwrap().unwrap()
    });
    assert!(said.starts_with("(3 "), "{said}");
    assert!(said.contains(":2: a closing parenthesis that closes nothing"), "{said}");
}

#[test]
fn resignalled_error_keeps_its_form() {
    let report = report("(handler-case (car 5) (error (e) (error e)))");
    assert!(report.contains("\n  in (car 5)\n"), "{report}");
}

#[test]
fn prompt_remembers_values_and_forms() {
    let shown = with_lisp(|lisp| {
        lisp.evaluate("(+ 1 2)").unwrap();
        lisp.evaluate("(* 2 5)").unwrap();
        lisp.evaluate("(list * ** + /)").unwrap().unwrap()
    });
    assert_eq!(shown, "(10 3 (* 2 5) (10))");
}

#[test]
fn help_tells_what_a_name_means() {
    let told = |topic: &str| {
        with_lisp(|lisp| {
            let text = format!(
                "(let ((s (make-string-output-stream))) (help {topic} s) (get-output-stream-string s))"
            );
            lisp.evaluate(&text).unwrap().unwrap()
        })
    };
    assert!(told("'car").starts_with("\"(car list) returns the first element"));
    assert!(told("'string-capitalize").contains("a function of at least 1 arguments"));
    assert!(told("\"no-such-name\"").contains("nothing is known"));
}

#[test]
fn completions_offer_what_the_line_can_use() {
    with_lisp(|lisp| {
        lisp.evaluate("(setq *cube* (make-cube 1 2 3)) (setq unread-name-x 'never-given-y)").unwrap();
        let names = |lisp: &Interpreter, head: &str| lisp.completions(head).1;
        assert!(names(lisp, "(send *cube* :vol").contains(&":volume".to_owned()));
        assert!(!names(lisp, "(send *cube* :").contains(&":enqueue".to_owned()));
        assert!(names(lisp, "(mapca").contains(&"mapcan".to_owned()));
        assert!(names(lisp, "(list unread-").contains(&"unread-name-x".to_owned()));
        // Symbols without a value or a function were only read: parameters of the library, for example.
        assert!(names(lisp, "never-given").is_empty());
        assert!(names(lisp, "(sys:make-th").contains(&"sys:make-thread".to_owned()));
    });
}
