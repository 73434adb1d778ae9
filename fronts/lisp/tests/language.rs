//! The Lisp test suite: `tests/*.l` with the printed value of each form, run by the evaluator and in threads, also
//! with collections at every n-th allocation.

use largesse_arena::NearMemory;
use largesse_gc::{GcSettings, Sync};
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const STACK: usize = 64 << 20;

/// Defines `(check "printed" form)`, which records a failure when the value prints differently.
const CHECK: &str = include_str!("check.l");

/// Runs `act` with a Lisp, on a thread with a large stack.
fn with_lisp<R: Send>(settings: GcSettings, act: impl FnOnce(&mut Interpreter) -> R + Send) -> R {
    std::thread::scope(|scope| {
        let run = || {
            let range = Reserved::new(256 * SPAN, SPAN).unwrap();
            let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
            let mut lisp = Interpreter::start(settings, memory, STACK, Vec::new()).unwrap();
            act(&mut lisp)
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap();
        thread.join().unwrap()
    })
}

fn settings(sync: Sync, stress: u64) -> GcSettings {
    let (verify, poison) = (stress == 1000, stress > 0);
    GcSettings { sync, stress, limit: 256 << 20, gc_threads: 2, verify, poison, ..GcSettings::default() }
}

fn value(lisp: &mut Interpreter, text: &str) -> String {
    match lisp.evaluate(text) {
        Ok(shown) => shown.unwrap_or_default(),
        Err(ended) => panic!("{text}: {ended:?}"),
    }
}

const SUITES: [&str; 5] = ["values.l", "control.l", "machine-code.l", "issues.l", "threads.l"];

/// Loads suites into one Lisp, in the calling thread or in several threads in parallel, and expects no failure.
#[track_caller]
fn check(files: &[&str], settings: GcSettings, threads: usize) {
    with_lisp(settings, |lisp| {
        value(lisp, CHECK);
        if threads > 1 {
            value(lisp, &format!("(sys:make-thread {threads})"));
        }
        for file in files {
            value(lisp, "(setq *checks* 0)");
            let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
            if threads == 1 {
                lisp.load(&path).unwrap();
            } else {
                let start = format!("(dotimes (i {threads}) (push (sys:thread #'load \"{path}\") l))");
                value(lisp, &format!("(let (l) {start} (mapcar #'sys:wait-thread l))"));
            }
            assert_ne!(value(lisp, "*checks*"), "0", "nothing was checked");
            assert_eq!(value(lisp, "*failures*"), "nil", "{file}, {threads} threads");
        }
    });
}

#[test]
fn suites_give_expected_values() {
    for sync in [Sync::Safepoint, Sync::Mutex, Sync::Rwlock] {
        check(&SUITES, settings(sync, 0), 1);
    }
}

#[test]
fn inlined_functions_agree_with_builtins() {
    check(&["inlined.l"], settings(Sync::Safepoint, 0), 1);
    check(&["inlined.l"], settings(Sync::Safepoint, 5000), 1);
}

#[test]
fn files_and_processes_are_reached() {
    check(&["system.l", "debugger.l"], settings(Sync::Safepoint, 0), 1);
    check(&["system.l", "debugger.l"], settings(Sync::Safepoint, 1000), 1);
}

#[test]
fn functions_of_c_and_sockets_work() {
    check(&["foreign.l"], settings(Sync::Safepoint, 0), 1);
    check(&["foreign.l"], settings(Sync::Safepoint, 500), 1);
}

#[test]
fn arriving_input_calls_functions() {
    check(&["servers.l"], settings(Sync::Safepoint, 0), 1);
    check(&["servers.l"], settings(Sync::Safepoint, 500), 1);
}

#[test]
fn gc_hook_runs_for_every_collection() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(
            lisp,
            "(setq told 0 sys:*gc-hook* #'(lambda (free all) (if (< 0 free all) (setq told (+ told 1)))))",
        );
        value(lisp, "(dotimes (i 3) (sys:gc))");
        assert_eq!(value(lisp, "told"), "3");
        // Collections that the hook itself causes do not call it endlessly.
        value(
            lisp,
            "(setq sys:*gc-hook* #'(lambda (free all) (setq told (+ told 1)) (dotimes (i 40) (make-list 100000))))",
        );
        // More than the budget between two collections.
        value(lisp, "(dotimes (i 200) (make-list 100000))");
        assert_ne!(value(lisp, "told"), "3");
    });
}

#[test]
fn suites_pass_under_stress() {
    check(&SUITES, settings(Sync::Safepoint, 1000), 1);
    check(&SUITES, settings(Sync::Safepoint, 101), 1);
}

#[test]
fn suites_pass_in_parallel_threads() {
    check(&["values.l"], settings(Sync::Safepoint, 0), 2);
    check(&["values.l"], settings(Sync::Safepoint, 1000), 8);
}

#[test]
fn collection_after_thread_creation_is_safe() {
    for _ in 0..10 {
        with_lisp(settings(Sync::Safepoint, 0), |lisp| {
            value(
                lisp,
                "(defun mk (n) (let (r) (dotimes (i n) (setq r (copy-seq '(1 2 3 4 5 6 7 8 9 10)))) (length r)))",
            );
            for _ in 0..10 {
                let text = "(progn (sys:make-thread 4) (sys:gc) (let (l) (dotimes (i 4) (push (sys:thread #'mk 20) l)) (mapcar #'sys:wait-thread l)))";
                assert_eq!(value(lisp, text), "(10 10 10 10)");
            }
        });
    }
}

#[test]
fn arguments_of_machine_code_survive_collections() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(defun grow (n l) (if (= n 0) l (grow (- n 1) (cons n l))))");
        value(
            lisp,
            "(defun wrong (l) (let ((n 0)) (dolist (x l (/= n 20000)) (unless (equal x (setq n (+ n 1))) (return t)))))",
        );
        value(lisp, "(progn (compile 'grow) (compile 'wrong) (sys:make-thread 1) (setq *collecting* t))");
        value(lisp, "(setq *collector* (sys:thread #'(lambda () (while *collecting* (sys:gc)))))");
        assert_eq!(
            value(lisp, "(let ((n 0)) (dotimes (i 50 n) (if (wrong (grow 20000 nil)) (incf n))))"),
            "0"
        );
        value(lisp, "(progn (setq *collecting* nil) (sys:wait-thread *collector*))");
    });
}

#[test]
fn out_of_memory_is_an_error() {
    let small = GcSettings { limit: 48 << 20, ..settings(Sync::Safepoint, 0) };
    with_lisp(small, |lisp| {
        let text = "(handler-case (let (l) (while t (push (make-array 10000) l))) (out-of-memory (e) 'full))";
        for _ in 0..3 {
            assert_eq!(value(lisp, text), "full");
            assert_eq!(value(lisp, "(length (make-list 10000))"), "10000");
        }
        assert_eq!(value(lisp, "(handler-case (make-array 1000000000000) (error (e) 'no))"), "no");
    });
}

#[test]
fn duplicates_are_found_without_comparing_all_pairs() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(setq l nil)");
        value(lisp, "(dotimes (i 120000) (push (list i) l))");
        let clock = ThreadClock::of_this_thread();
        let began = clock.now();
        assert_eq!(value(lisp, "(length (remove-duplicates (append l l)))"), "120000");
        let took = clock.now() - began;
        assert!(took < Duration::from_secs(10), "{took:?} of processor time");
    });
}

#[test]
fn error_report_has_a_backtrace() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(defun g (x) (car x))");
        value(lisp, "(defun f (x) (g x))");
        let Err(Ended::Error(report)) = lisp.evaluate("(f 3)") else { panic!("no error") };
        let lines: Vec<&str> = report.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            ["type-error: list expected, not 3", "in (car x)", "0: at (car x)", "1: at (g x)", "2: at (f 3)"]
        );
        let Err(Ended::Error(report)) = lisp.evaluate("(list (f nil) nowhere)") else { panic!("no error") };
        assert!(
            report.starts_with("unbound-variable: unbound variable nowhere\n  in nowhere\n  0: at (list"),
            "{report}"
        );
        assert_eq!(value(lisp, "(+ 1 2)"), "3");
    });
}

/// Evaluates a text and interrupts it when it has used a number of milliseconds of processor time, which other programs
/// do not shorten.
fn interrupted(lisp: &mut Interpreter, milliseconds: u64, text: &str) -> Result<Option<String>, Ended> {
    let interrupt = lisp.interrupt();
    let (clock, is_over) = (ThreadClock::of_this_thread(), AtomicBool::new(false));
    let due = clock.now() + Duration::from_millis(milliseconds);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while clock.now() < due && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            interrupt.all_threads();
        });
        let answer = lisp.evaluate(text);
        is_over.store(true, Ordering::Relaxed);
        answer
    })
}

/// The processor time of one thread, which other threads can read while it runs.
struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    fn of_this_thread() -> ThreadClock {
        let mut clock = 0;
        // SAFETY: a thread that asks for its own clock runs, and `clock` is writable.
        assert_eq!(unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) }, 0);
        ThreadClock(clock)
    }

    fn now(&self) -> Duration {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is writable.
        assert_eq!(unsafe { libc::clock_gettime(self.0, &raw mut now) }, 0);
        Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap())
    }
}

/// Returns whether all workers stop; on a loaded machine this may take longer than one second.
fn all_stop(lisp: &mut Interpreter) -> bool {
    (0..20).any(|_| lisp.resume() == 0)
}

#[test]
fn interrupt_stops_every_thread() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(sys:make-thread 2)");
        let text = "(progn (sys:thread #'(lambda () (while t))) (sys:thread #'(lambda () (unix:sleep 1000))) (while t))";
        assert_eq!(interrupted(lisp, 200, text), Err(Ended::Interrupted));
        assert!(all_stop(lisp));
        assert_eq!(value(lisp, "(+ 1 2)"), "3");
        assert_eq!(value(lisp, "(length (sys:free-threads))"), "2");
        assert_eq!(value(lisp, "(sys:plist (+ 1 2) (* 2 3))"), "(3 6)");
    });
}

/// Results that were ready before can still be fetched, until the thread gets other work.
#[test]
fn interrupt_returns_threads_to_the_pool() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(sys:make-thread 3)");
        value(lisp, "(setq *done* (sys:thread #'+ 1 2) *lost* (sys:thread #'+ 3 4))");
        let text = "(progn (setq *stopped* (sys:thread #'(lambda () (while t)))) (while t))";
        assert_eq!(interrupted(lisp, 200, text), Err(Ended::Interrupted));
        assert!(all_stop(lisp));
        assert_eq!(value(lisp, "(length (sys:free-threads))"), "3");
        assert_eq!(value(lisp, "(sys:wait-thread *done*)"), "3");
        assert_eq!(lisp.evaluate("(sys:wait-thread *stopped*)"), Err(Ended::Interrupted));
        assert_eq!(value(lisp, "(length (sys:free-threads))"), "3");
        for _ in 0..3 {
            assert_eq!(value(lisp, "(sys:plist (+ 1 2) (* 2 3) 4)"), "(3 6 4)");
        }
    });
}

/// Ctrl-C ends `cond-wait` with the mutex locked, as its cleanup forms unlock it.
#[test]
fn interrupted_cond_wait_holds_its_mutex() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(
            lisp,
            "(progn (sys:make-thread 1) (setq m (sys:make-mutex-lock) c (sys:make-cond) held 'unknown))",
        );
        let clean_up = "(setq held (not (sys:mutex-trylock m))) (sys:mutex-unlock m)";
        let wait = format!("(sys:mutex-lock m) (unwind-protect (sys:cond-wait c m) {clean_up})");
        let text = format!("(progn (sys:thread #'(lambda () {wait})) (while t))");
        assert_eq!(interrupted(lisp, 300, &text), Err(Ended::Interrupted));
        assert!(all_stop(lisp));
        assert_eq!(value(lisp, "held"), "t");
    });
}

/// During cleanup after Ctrl-C, the thread's own collections do not interrupt it again.
#[test]
fn interrupt_lets_cleanup_finish() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        value(lisp, "(setq *cleaned* nil)");
        let clean_up = "(dotimes (i 10) (sys:gc) (make-list 100)) (setq *cleaned* t)";
        assert_eq!(
            interrupted(lisp, 200, &format!("(unwind-protect (while t) {clean_up})")),
            Err(Ended::Interrupted)
        );
        lisp.resume();
        assert_eq!(value(lisp, "*cleaned*"), "t");
    });
}

/// An interrupt ends the evaluation of a circular body, even of one without a call.
#[test]
fn interrupt_stops_circular_forms() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        for form in [
            "(progn . #1=(1 . #1#))",
            "(funcall '(lambda () . #1=(1 . #1#)))",
            "(funcall '(lambda (&allow-other-keys . #1=(&allow-other-keys . #1#))))",
            "(setq . #1=(x 1 . #1#))",
            "(cond . #1=((nil) . #1#))",
            "(and . #1=(t . #1#))",
            "(or . #1=(nil . #1#))",
            "(tagbody . #1=(1 . #1#))",
        ] {
            assert_eq!(interrupted(lisp, 100, form), Err(Ended::Interrupted), "{form}");
            lisp.resume();
        }
    });
}

/// A copy of a list that another thread truncates contains only elements of the list.
#[test]
fn copying_a_truncated_list_is_safe() {
    let often = GcSettings { stress: 67, poison: true, ..settings(Sync::Safepoint, 0) };
    with_lisp(often, |lisp| {
        value(lisp, "(defun fresh () (make-list 100 :initial-element (list 1 2)))");
        value(
            lisp,
            "(defun cut () (while *cutting* (let ((old *shared*)) (setq *shared* (fresh)) (rplacd (nthcdr 9 old) nil))))",
        );
        value(lisp, "(progn (setq *cutting* t *shared* (fresh)) (sys:make-thread 1))");
        value(lisp, "(setq *cutter* (sys:thread #'cut))");
        for copy in [
            "(copy-list l)",
            "(copy-seq l)",
            "(copy-tree l)",
            "(copy-alist l)",
            "(copy-object l)",
            "(reverse l)",
            "(append l l)",
            "(mapcar #'car l)",
            "(sort l #'(lambda (a b) nil))",
            "(remove 5 l)",
            "(coerce l vector)",
        ] {
            let wrong = format!(
                "(every #'(lambda (it) (member it '((1 2) 1) :test #'equal)) (let ((l *shared*)) {copy}))"
            );
            assert_eq!(
                value(lisp, &format!("(dotimes (i 10 'right) (unless {wrong} (return i)))")),
                "right",
                "{copy}"
            );
        }
        value(lisp, "(progn (setq *cutting* nil) (sys:wait-thread *cutter*))");
    });
}

#[test]
fn interrupt_stops_machine_code() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        for body in [
            "(while t)",
            "(tagbody again (go again))",
            "(labels ((f () (f))) (loop (handler-case (f) (error ()))))",
        ] {
            value(lisp, &format!("(defun spin () (unwind-protect {body} (setq cleaned 'yes)))"));
            assert_eq!(value(lisp, "(compile 'spin)"), "spin");
            assert_eq!(interrupted(lisp, 400, "(spin)"), Err(Ended::Interrupted), "{body}");
            lisp.resume();
            assert_eq!(value(lisp, "(prog1 cleaned (setq cleaned nil))"), "yes", "{body}");
        }
    });
}

/// The caller does not keep arguments alive; another thread collects, and dead objects are overwritten.
#[test]
fn callee_keeps_its_arguments_alive() {
    let poisoned = GcSettings { poison: true, ..settings(Sync::Safepoint, 0) };
    with_lisp(poisoned, |lisp| {
        value(lisp, "(defun hand-on (n c) (if (= n 0) (car c) (hand-on (- n 1) (cons (+ (car c) 1) nil))))");
        value(lisp, "(compile 'hand-on)");
        value(lisp, "(progn (sys:make-thread 1) (sys:thread #'(lambda () (dotimes (i 300) (sys:gc)))))");
        for _ in 0..300 {
            assert_eq!(value(lisp, "(hand-on 300 (list 1))"), "301");
        }
    });
}

#[test]
fn unfinished_input_is_incomplete() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        for (text, incomplete) in
            [("(a (b)", true), ("\"abc", true), ("(a)", false), ("'", true), (")", false), ("#|", true)]
        {
            assert_eq!(lisp.is_incomplete(text.as_bytes()), incomplete, "{text}");
        }
    });
}

/// A program may use the names of the geometry's internal functions.
#[test]
fn helper_names_are_free_for_programs() {
    const HELPERS: [&str; 16] = [
        "convex-ring-p",
        "ring-centroid",
        "solid-measures",
        "measure-edges",
        "move-points",
        "locate-in-ring",
        "common-box",
        "edges-cross-p",
        "faces-in-box",
        "faces-meet-p",
        "weave-rings",
        "hull-rings",
        "compose-rings",
        "weave",
        "make-body",
        "copy-csg",
    ];
    let volumes = "(mapcar #'(lambda (b) (round (send b :volume))) (list (make-cube 10 20 30) (body+ (make-cube 10 10 10) (make-cube 10 10 30)) (convex-hull-3d '(#f(0 0 0) #f(6 0 0) #f(0 6 0) #f(0 0 6)))))";
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        for helper in HELPERS {
            assert_eq!(value(lisp, &format!("(fboundp '{helper})")), "nil", "{helper}");
            value(lisp, &format!("(defun {helper} (&rest all) (error \"{helper} of the program\"))"));
        }
        assert_eq!(value(lisp, volumes), "(6000 3000 36)");
        let cross = "(body-interference (make-cube 10 10 10) (make-cube 1 1 30))";
        assert_ne!(value(lisp, cross), "nil");
        for public in ["triangle", "vector-angle", "face-normal-vector", "make-cube", "*epsilon*"] {
            assert_eq!(value(lisp, &format!("(eq 'geo:{public} '{public})")), "t", "{public}");
        }
    });
}

#[test]
fn exit_returns_its_status() {
    with_lisp(settings(Sync::Safepoint, 0), |lisp| {
        assert_eq!(lisp.evaluate("(unwind-protect (exit 7) (+ 1 2))"), Err(Ended::Quit(7)));
    });
}
