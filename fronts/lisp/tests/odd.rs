//! Calls every function, macro and special form of the Lisp with unsuitable arguments: the result is a value or an
//! error. A child process makes the calls and records each in advance, to identify a crash, a panic, or a call that
//! Ctrl-C does not end.
//!
//! `cargo test -p largesse-lisp --test odd -- SEED CALLS` chooses other arguments, and the number of calls.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const STACK: usize = 16 << 20;
/// Default number of calls of each function with two or more arguments.
const CALLS: u64 = 25;
/// The file in which the calls are recorded.
const TRACE: &str = "trace";
const ENDLESS: &str = "a call ends neither by itself nor by Ctrl-C";

const START: &str = "
(defun circle () (let ((l (list 1 2))) (rplacd (cdr l) l)))
(setq *cube* (make-cube 1 2 3))
(sys:make-thread 2)";

/// Restores state that a call may have changed and later calls need.
const RESET: &str = "(lisp:progn (lisp:install-error-handler nil) (lisp:in-package 'user))";

/// Argument expressions for functions: they create new objects, as functions may modify them.
const VALUES: &[&str] = &[
    "nil",
    "t",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100",
    "100000000000",
    "most-positive-fixnum",
    "most-negative-fixnum",
    "(expt 10 30)",
    "(- (expt 10 30))",
    "2/3",
    "0.0",
    "2.5",
    "-1e300",
    "'odd",
    ":odd",
    "'#:odd",
    "'(lambda (x) x)",
    "(list 1 2 3)",
    "(list* 1 2 3)",
    "(circle)",
    "(list nil)",
    "(list (list 1 2) (list 3 4))",
    "(list (cons 'a 1) 2)",
    "(list 'x :y \"z\" 2.5)",
    "(list (float-vector 1 2 3) (float-vector 4 5 6))",
    "(list #'car)",
    "\"\"",
    "(copy-seq \"odd\")",
    "(vector)",
    "(vector 1 2.5 'c)",
    "(float-vector)",
    "(float-vector 1 2 3)",
    "(float-vector 0 0 0)",
    "(integer-vector 1 2)",
    "(bit-vector 1 0 1)",
    "(make-array '(2 3))",
    "(make-matrix 2 2)",
    "(unit-matrix 3)",
    "(make-array 3 :fill-pointer 1)",
    "(make-array 2 :displaced-to (vector 1 2 3) :displaced-index-offset 1)",
    "(make-hash-table)",
    "(make-string-input-stream \"odd (\")",
    "(make-string-output-stream)",
    "(find-package 'user)",
    "object",
    "cons",
    "#'car",
    "#'(lambda (x) x)",
    "#'(lambda (x y) (< x y))",
    "#'(lambda (&rest l) l)",
    "(sys:make-mutex-lock)",
    "(sys:make-semaphore)",
    "(sys:make-cond)",
    "(sys:thread-self)",
    "(make-coords)",
    "*cube*",
    ":key",
    ":test",
    ":start",
    ":end",
    ":count",
    ":initial-element",
    ":element-type",
    ":direction",
];

/// Data for special forms and macros, which get their arguments unevaluated.
const FORMS: &[&str] = &[
    "nil",
    "t",
    "0",
    "-1",
    "odd",
    ":odd",
    "\"odd\"",
    "2.5",
    "(a)",
    "(a b c)",
    "(a . b)",
    "((a 1) (b 2))",
    "((a . 1))",
    "(1 2)",
    "(((a)))",
    "((a b) c . d)",
    "(nil)",
    "(t)",
    "((1 2) . 3)",
    "#(1 2)",
    "(quote . a)",
    "(lambda)",
    "((lambda (x) x) 1)",
    "((f (x) x))",
    "((f . x))",
    "(&rest)",
    "(&optional (a . b) &key)",
    "(&key 3)",
    "(car . 1)",
    "(function . a)",
    "(list 1 2)",
    "(declare (special odd))",
    "(declare . odd)",
    "(setq odd 1)",
    "(aref odd)",
    "object",
];

/// Functions that are not called: later calls would not find their names, the number of threads would grow, message queues
/// would be left behind, a name server would be asked again and again, or the test would run before other programs.
const LEFT_OUT: [&str; 11] = [
    "rename-package",
    "system:make-thread",
    "open-server",
    "largesse:call-when-readable",
    "unix:msgget",
    "make-msgq-input-stream",
    "make-msgq-output-stream",
    "unix:thr-setprio",
    "unix:gethostbyname",
    "make-socket-address",
    "connect-server",
];

/// Number of calls ended by Ctrl-C after which a function is not called again.
const PATIENCE: usize = 3;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).map_while(|text| text.parse().ok()).collect();
    let number = |index: usize, without: u64| numbers.get(index).copied().unwrap_or(without);
    let (seed, calls) = (number(0, 1), number(1, CALLS));
    if let Some(from) = numbers.get(2) {
        child(seed, calls, usize::try_from(*from).unwrap());
        return ExitCode::SUCCESS;
    }
    let folder = std::env::temp_dir().join(format!("largesse-odd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the output of calls");
    let mut report = String::new();
    let mut from = 0;
    while let Some((died_at, said)) = all_from(from, seed, calls, &folder) {
        report += &said;
        from = died_at + 1;
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    std::io::stderr().write_all(report.as_bytes()).expect("standard error");
    if report.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Calls all functions from a number on, in a child process; returns the number at which it died, and the reason.
fn all_from(from: usize, seed: u64, calls: u64, folder: &Path) -> Option<(usize, String)> {
    let done = Command::new(std::env::current_exe().expect("this program"))
        .args([seed, calls, from as u64].map(|number| number.to_string()))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .expect("a process");
    if done.status.success() {
        return None;
    }
    let trace = std::fs::read_to_string(folder.join(TRACE)).unwrap_or_default();
    let said = String::from_utf8_lossy(&done.stderr);
    let Some((number, call)) = trace.lines().last().and_then(|line| line.split_once(' ')) else {
        panic!("no call was made: {} {said}", done.status);
    };
    let why: Vec<&str> =
        said.lines().skip_while(|line| !line.contains("panicked") && *line != ENDLESS).take(2).collect();
    Some((number.parse().unwrap(), format!("{call}: {} {}\n", done.status, why.join(" "))))
}

/// Makes the calls, in the Lisp's own thread. The signals of timers, which would end the process, are ignored.
fn child(seed: u64, calls: u64, from: usize) {
    for signal in [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF] {
        // SAFETY: ignoring a signal runs none of our code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let run = move || make_calls(seed, calls, from);
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

fn make_calls(seed: u64, calls: u64, from: usize) {
    let range = Reserved::new(256 * SPAN, SPAN).unwrap();
    let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
    let settings = GcSettings { limit: 64 << 20, gc_threads: 1, ..GcSettings::default() };
    let mut lisp = Interpreter::start(settings, memory, STACK - (1 << 20), Vec::new()).unwrap();
    lisp.evaluate(START).unwrap();
    let names = |lisp: &mut Interpreter, test: &str| -> Vec<String> {
        let text = format!(
            "(let (l) (do-all-symbols (s) (if (and (fboundp s) {test}) (push s l))) (remove-duplicates l))"
        );
        let names = lisp.evaluate(&text).unwrap().unwrap();
        let mut names: Vec<String> = names.trim_matches(['(', ')']).split(' ').map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    let functions = names(&mut lisp, "(not (special-form-p s)) (not (macro-function s))");
    let operators = names(&mut lisp, "(or (special-form-p s) (macro-function s))");
    let classes = lisp.evaluate("(mapcar #'class-name (largesse::all-classes))").unwrap().unwrap();
    let mut values: Vec<String> = VALUES.iter().copied().map(str::to_owned).collect();
    // Instances with unset slots.
    values.extend(classes.trim_matches(['(', ')']).split(' ').map(|class| format!("(instantiate {class})")));
    let forms: Vec<String> = FORMS.iter().copied().map(str::to_owned).collect();
    let mut caller = Caller::new(lisp);
    let all = functions.iter().map(|name| (name, &values)).chain(operators.iter().map(|name| (name, &forms)));
    for (number, (name, table)) in all.enumerate().skip(from) {
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        caller.begin(number, seed);
        caller.call(name, &[]);
        for value in table {
            caller.call(name, &[value]);
        }
        for count in [2, 3, 4] {
            for _ in 0..calls {
                let arguments: Vec<&String> = (0..count).map(|_| &table[caller.below(table.len())]).collect();
                caller.call(name, &arguments);
            }
        }
    }
}

struct Caller {
    lisp: Interpreter,
    /// The number of the function that is called.
    function: usize,
    random: u64,
    trace: std::fs::File,
    /// The number of calls made, which the watchdog reads.
    made: Arc<AtomicUsize>,
    /// Number of calls of the current function ended by Ctrl-C.
    ended: usize,
}

impl Caller {
    fn new(lisp: Interpreter) -> Caller {
        let made = Arc::new(AtomicUsize::new(0));
        let (watched, interrupt) = (Arc::clone(&made), lisp.interrupt());
        std::thread::spawn(move || {
            let mut seen = 0;
            let mut times = 0;
            loop {
                std::thread::sleep(Duration::from_millis(20));
                let now = watched.load(Ordering::Relaxed);
                times = if now == seen { times + 1 } else { 0 };
                seen = now;
                if times >= 3 {
                    interrupt.all_threads();
                }
                if times >= 3000 {
                    std::io::stderr().write_all(ENDLESS.as_bytes()).unwrap();
                    std::process::exit(1);
                }
            }
        });
        let trace = std::fs::File::create(TRACE).unwrap();
        Caller { lisp, function: 0, random: 0, trace, made, ended: 0 }
    }

    /// Returns a random number below `most`.
    fn below(&mut self, most: usize) -> usize {
        // SplitMix64, by Steele, Lea and Flood.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from(mixed >> 33).unwrap() % most
    }

    /// Prepares the calls of a function, which do not depend on earlier calls.
    fn begin(&mut self, function: usize, seed: u64) {
        (self.function, self.random, self.ended) = (function, seed << 32 | function as u64, 0);
        // Ctrl-C may arrive late.
        while self.lisp.evaluate(RESET) == Err(Ended::Interrupted) {
            self.lisp.resume();
        }
    }

    fn call(&mut self, name: &str, arguments: &[&String]) {
        if self.ended == PATIENCE {
            return;
        }
        let mut text = format!("({name}");
        for argument in arguments {
            text.push(' ');
            text.push_str(argument);
        }
        text.push(')');
        writeln!(self.trace, "{} {text}", self.function).unwrap();
        let ended = self.lisp.evaluate(&text);
        self.made.fetch_add(1, Ordering::Relaxed);
        if ended == Err(Ended::Interrupted) {
            self.ended += 1;
            self.lisp.resume();
        }
    }
}
