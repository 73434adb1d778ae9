//! Compiles files by `compile-file`: a compiled file behaves as its source, without the source and its macros.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const STACK: usize = 16 << 20;

fn with_lisp<R: Send>(settings: GcSettings, act: impl FnOnce(&mut Interpreter) -> R + Send) -> R {
    std::thread::scope(|scope| {
        let run = || {
            let range = Reserved::new(256 * SPAN, SPAN).unwrap();
            let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
            let mut lisp = Interpreter::start(settings, memory, STACK - (64 << 10), Vec::new()).unwrap();
            act(&mut lisp)
        };
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join().unwrap()
    })
}

#[track_caller]
fn value(lisp: &mut Interpreter, text: &str) -> String {
    match lisp.evaluate(text) {
        Ok(shown) => shown.unwrap_or_default(),
        Err(ended) => panic!("{text}: {ended:?}"),
    }
}

#[track_caller]
fn error(lisp: &mut Interpreter, text: &str) -> String {
    match lisp.evaluate(text) {
        Err(Ended::Error(report)) => report,
        other => panic!("{text}: {other:?}"),
    }
}

/// Creates an empty folder for the test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiles a source and removes it; returns the path without its suffix.
fn compiled(folder: &Path, name: &str, source: &str, before: &str) -> String {
    let path = folder.join(name).display().to_string();
    fs::write(format!("{path}.l"), source).unwrap();
    with_lisp(GcSettings::default(), |lisp| {
        value(lisp, before);
        assert_eq!(value(lisp, &format!("(compile-file \"{path}\")")), format!("\"{path}.lc\""));
    });
    fs::remove_file(format!("{path}.l")).unwrap();
    path
}

#[test]
fn compiled_file_defines_compiled_functions() {
    let folder = folder("defines");
    let source = r#"
        (make-package "TOOLS")
        (in-package "TOOLS")
        (defmacro doubled (x) `(* 2 ,x))
        (defvar *first* (doubled 4))
        (defun f (x) (let ((all (list (doubled x) (user::elsewhere x)))) (dolist (it all) (incf x it)) x))
        (defclass point :super object :slots (x y))
        (defmethod point (:init (a) (setq x a y (doubled a)) self) (:sum () (+ x y)))
        (eval-when (compile) (setq user::*compiling* t))
        (progn (setq *order* (list *first*)) (push (f 1) *order*))
    "#;
    let path = compiled(&folder, "defines", source, "(defmacro elsewhere (x) `(+ 100 ,x))");
    with_lisp(GcSettings::default(), |lisp| {
        value(lisp, &format!("(load \"{path}\")"));
        for (form, wanted) in [
            ("(tools::f 3)", "112"),
            ("tools::*order*", "(104 8)"),
            ("(send (instance tools::point :init 5) :sum)", "15"),
            ("(compiled-function-p #'tools::f)", "t"),
            ("(compiled-function-p (cdr (cadr (find-method tools::point :init))))", "t"),
            ("(compiled-function-p (cdr (cadr (find-method tools::point :sum))))", "t"),
            ("(boundp '*compiling*)", "nil"),
            ("(package-name *package*)", "\"USER\""),
            ("(fboundp 'elsewhere)", "nil"),
        ] {
            assert_eq!(value(lisp, form), wanted, "{form}");
        }
    });
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn constants_round_trip_exactly() {
    let folder = folder("constants");
    let path = folder.join("constants").display().to_string();
    let source = r#"
        (defun constants ()
          '(1 -5 123456789012345678901234567890 -7/3 0.1 1e300 -0.0 "a \"string\"" :key |Odd name| unix:getpid
            #(1 (2) "three") #f(0.1 1e-300 3) #i(1 -2 3) #*10110 #2f((1 2) (3 4)) #3a(((1 2)) ((3 4))) (a . b)))
        (defun again () '(#1=(x y) #1# #2=(z . #2#)))
        (defmacro own () (let ((name (gensym))) `(let ((,name 5)) (list ',name (+ ,name 1) ',name))))
        (defun fresh () (own))
    "#;
    fs::write(format!("{path}.l"), source).unwrap();
    let show = "(progn (load \"/PATH/\") (list (constants) (mapcar #'(lambda (x) (if (floatp x) (format nil \"~1,17e\" x))) (constants)) (eq (car (again)) (cadr (again))) (eq (caddr (again)) (cdr (caddr (again)))) (let ((own (fresh))) (and (eq (car own) (caddr own)) (null (symbol-package (car own))) (cadr own)))))";
    let shown = |ending: &str| {
        let show = show.replace("/PATH/", &format!("{path}{ending}"));
        with_lisp(GcSettings::default(), |lisp| value(lisp, &show))
    };
    let wanted = shown(".l");
    assert!(wanted.ends_with("t t 6)"), "{wanted}");
    with_lisp(GcSettings::default(), |lisp| value(lisp, &format!("(compile-file \"{path}.l\")")));
    assert_eq!(shown(".lc"), wanted);
    fs::remove_dir_all(folder).unwrap();
}

/// Compares every form of the test suites, expanded and stored, with its expected value.
#[test]
fn compiled_suites_give_expected_values() {
    let folder = folder("suites");
    let check = include_str!("check.l");
    for suite in ["values", "control", "machine-code"] {
        let source = fs::read_to_string(format!("{}/tests/{suite}.l", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let path = compiled(&folder, suite, &source, check);
        // With periodic collections, to show that reading a file keeps its objects alive.
        for stress in [0, 997] {
            let settings = GcSettings { stress, poison: stress > 0, ..GcSettings::default() };
            with_lisp(settings, |lisp| {
                value(lisp, check.split("(defmacro").next().unwrap());
                value(lisp, &format!("(load \"{path}\")"));
                assert_eq!(value(lisp, "*failures*"), "nil", "{suite}");
                assert_ne!(value(lisp, "*checks*"), "0", "{suite}");
            });
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn load_prefers_the_newer_file() {
    let folder = folder("newer");
    let path = folder.join("which").display().to_string();
    let answer = |name: &str| {
        with_lisp(GcSettings::default(), |lisp| {
            value(lisp, &format!("(load \"{name}\")"));
            value(lisp, "which")
        })
    };
    fs::write(format!("{path}.l"), "(setq which 'compiled)").unwrap();
    with_lisp(GcSettings::default(), |lisp| {
        value(lisp, &format!("(compile-file \"{path}\" :verbose nil :optimize 2)"))
    });
    fs::write(format!("{path}.l"), "(setq which 'source)").unwrap();
    let changed = |ending: &str, seconds: u64| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        File::options().write(true).open(format!("{path}{ending}")).unwrap().set_modified(time).unwrap();
    };
    for (source, compiled, wanted) in [(10, 20, "compiled"), (10, 10, "compiled"), (20, 10, "source")] {
        changed(".l", source);
        changed(".lc", compiled);
        assert_eq!(answer(&path), wanted);
    }
    assert_eq!(
        (answer(&format!("{path}.l")), answer(&format!("{path}.lc"))),
        ("source".into(), "compiled".into())
    );
    with_lisp(GcSettings::default(), |lisp| {
        let newer = |new: &str, old: &str| format!("(file-newer \"{path}{new}\" \"{path}{old}\")");
        assert_eq!(value(lisp, &newer(".l", ".lc")), "t");
        value(lisp, &format!("(compile-file-if-src-newer \"{path}\")"));
        assert_eq!(value(lisp, &newer(".l", ".lc")), "nil");
        let other = folder.join("other.lc").display().to_string();
        let shown = value(lisp, &format!("(compile-file \"{path}\" :output-file \"{other}\")"));
        assert_eq!(shown, format!("\"{other}\""));
    });
    assert_eq!(answer(&path), "source");
    assert_eq!(answer(&folder.join("other").display().to_string()), "source");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn failures_are_reported() {
    let folder = folder("refused");
    let path = folder.join("refused").display().to_string();
    with_lisp(GcSettings::default(), |lisp| {
        assert!(
            error(lisp, "(compile-file \"/nowhere/x\")")
                .contains("/nowhere/x: no such file, also not as /nowhere/x.l")
        );
        fs::write(format!("{path}.l"), "(setq a 1) (car 5)").unwrap();
        assert!(error(lisp, &format!("(compile-file \"{path}\")")).contains("list expected, not 5"));
        fs::write(format!("{path}.l"), "(setq a '(1 #.(make-hash-table)))").unwrap();
        assert!(
            error(lisp, &format!("(compile-file \"{path}\")"))
                .contains("cannot be written to a compiled file")
        );
        fs::write(format!("{path}.l"), "(setq a 1)").unwrap();
        let nowhere = "/nowhere/refused.lc";
        let said = error(lisp, &format!("(compile-file \"{path}\" :output-file \"{nowhere}\")"));
        assert!(said.contains(nowhere), "{said}");
    });
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "a partial file is left");
    fs::remove_dir_all(folder).unwrap();
}

/// Damages a file in many ways: loading it returns a value or an error, and never crashes.
#[test]
fn damaged_file_is_an_error() {
    let folder = folder("damaged");
    let source =
        "(defun f (x) (list x \"text\" #(1 2) #f(1 2) #*101 #2f((1)) 12345678901234567890 -1/3 '#:a))";
    let path = compiled(&folder, "damaged", source, "t");
    let whole = fs::read(format!("{path}.lc")).unwrap();
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let load = format!("(load \"{path}.lc\")");
    with_lisp(GcSettings::default(), |lisp| {
        for end in header + 1..whole.len() {
            fs::write(format!("{path}.lc"), &whole[..end]).unwrap();
            let said = error(lisp, &load);
            assert!(said.contains("is damaged"), "{end}: {said}");
        }
        // Only constants are damaged, as changed code could be an endless program.
        let constant = whole.windows(5).position(|name| name == b"QUOTE").unwrap() + 5;
        for at in constant..whole.len() {
            for other in [0, 3, 4, 5, 8, 11, 12, 14, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = other;
                fs::write(format!("{path}.lc"), bytes).unwrap();
                let answer = lisp.evaluate(&load);
                assert!(matches!(answer, Ok(_) | Err(Ended::Error(_))), "{at} {other}: {answer:?}");
            }
        }
        fs::write(format!("{path}.lc"), ";largesse-lisp 1 0.0.0\n").unwrap();
        assert!(error(lisp, &load).contains("compiled by another version"));
    });
    fs::remove_dir_all(folder).unwrap();
}

/// In a shared folder, another user may have put a link under any name that can be guessed.
#[test]
fn compiling_follows_no_link() {
    let folder = folder("link");
    let victim = folder.join("victim");
    fs::write(&victim, "kept").unwrap();
    let guessed = folder.join(format!("a.lc.{}", std::process::id()));
    std::os::unix::fs::symlink(&victim, &guessed).unwrap();
    compiled(&folder, "a", "(defun a () 1)", "nil");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["a.lc", guessed.file_name().unwrap().to_str().unwrap(), "victim"],
        "no other file is left"
    );
}
