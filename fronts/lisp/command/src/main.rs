//! `largesse-lisp`, which `largesse lisp` executes: files, expressions, or a prompt.
#![expect(clippy::disallowed_macros, reason = "a front prints")]
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod far;
mod interrupt;
mod memory;
mod prompt;

use crate::say::complain;
use clap::{Parser, ValueEnum};
use largesse_far::Far;
use largesse_gc::{GcSettings, Sync};
use largesse_lisp::{Ended, Interpreter};
use largesse_terminal::{say, table};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

/// Run Lisp: a dialect of EusLisp whose heap is delegated to threads.
///
/// Files are loaded, then expressions are evaluated; without any of both there is a prompt. Exit status:
/// what `(exit n)` says, 1 after an error, 130 after Ctrl-C, 74 when far memory is lost.
#[derive(Debug, Parser)]
#[command(name = "largesse-lisp", bin_name = "largesse lisp", version)]
struct Args {
    /// Files to load, in order
    files: Vec<String>,
    /// Evaluate this, after the files; may be given more than once
    #[arg(short, long = "eval", value_name = "EXPR")]
    expressions: Vec<String>,
    /// Most memory the heap may use, e.g. 512M, 4G; half of the machine's unless given, or four times as much
    /// as it has with --local
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    heap: Option<usize>,
    /// How threads that allocate keep out of each other's way
    #[arg(long, value_enum, default_value_t = Synchronisation::Safepoint)]
    sync: Synchronisation,
    /// Threads that collect garbage; as many as there are processors unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    gc_threads: Option<u16>,
    /// Pages of the heap
    #[arg(long, value_enum, default_value_t = memory::Pages::Thp, conflicts_with = "local")]
    pages: memory::Pages,
    /// Far memory: keep at most so much of the heap in memory, as 4G, 512M or 50% of what it has; the rest is
    /// in a store
    #[arg(long, value_name = "SIZE|PERCENT", allow_hyphen_values = true, help_heading = "Far memory")]
    local: Option<OsString>,
    /// The store, as of `largesse run` [default: a file in $TMPDIR or /var/tmp]
    #[arg(long, value_name = "STORE", allow_hyphen_values = true, help_heading = "Far memory")]
    far: Option<OsString>,
    /// Bytes that move together: auto, or 4K, 8K … 2M [default: auto]
    #[arg(long, value_name = "auto|SIZE", allow_hyphen_values = true, help_heading = "Far memory")]
    page_size: Option<OsString>,
    /// Print what was allocated and how, at the end
    #[arg(long)]
    stats: bool,
    /// Collect at every n-th allocation, look at everything afterwards, and overwrite what died: for tests
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    stress: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Synchronisation {
    /// No delegation: one lock around every allocation
    Mutex,
    /// Delegation under a read lock that a collection takes for writing
    Rwlock,
    /// Delegation without any lock; threads stop at safepoints
    Safepoint,
}

/// Bytes of the machine's stack for the first thread.
const STACK: usize = 256 << 20;
/// Words of each thread's root stack: address space, touched as it is used.
const ROOTS: usize = 1 << 22;

fn main() -> ExitCode {
    let args = Args::parse();
    // First: ranks of a launcher fork.
    let far = match Far::of(args.local.as_ref(), args.far.as_ref(), args.page_size.as_ref()) {
        Ok(far) => far,
        Err(trouble) => {
            complain!("largesse lisp: {trouble}");
            return trouble.exit_code();
        }
    };
    interrupt::block();
    let status = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lisp".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, || run_here(&args, far.as_ref())) {
            Ok(thread) => thread.join().unwrap_or(101),
            Err(cause) => {
                complain!("largesse lisp: no thread with a stack of {STACK} bytes: {cause}");
                1
            }
        }
    });
    // Workers of the pool may still run: the process ends with the first thread.
    std::process::exit(status)
}

fn run_here(args: &Args, far: Option<&Far>) -> i32 {
    let defaults = GcSettings::default();
    let settings = GcSettings {
        sync: match args.sync {
            Synchronisation::Mutex => Sync::Mutex,
            Synchronisation::Rwlock => Sync::Rwlock,
            Synchronisation::Safepoint => Sync::Safepoint,
        },
        limit: args.heap.unwrap_or_else(|| memory::default_limit(far.is_some())),
        floor: far.and_then(memory::floor).unwrap_or(defaults.floor),
        root_words: ROOTS,
        stress: args.stress,
        poison: args.stress > 0,
        verify: args.stress > 0,
        ..defaults
    };
    let settings = match args.gc_threads {
        Some(threads) => GcSettings { gc_threads: usize::from(threads), ..settings },
        None => settings,
    };
    // The heap stays until the process ends: workers of the pool and threads that serve faults may still use it.
    let mut lisp = match start(args, settings, far) {
        Ok(lisp) => ManuallyDrop::new(lisp),
        Err(cause) => return failed(&cause),
    };
    interrupt::install(lisp.interrupt());
    let status = evaluate(&mut lisp, args);
    if args.stats {
        eprint!("{}", lisp.memory_report());
    }
    status
}

/// A Lisp whose heap is near, or far.
fn start(args: &Args, settings: GcSettings, far: Option<&Far>) -> Result<Interpreter, String> {
    let range = memory::reserve(settings.limit)?;
    let files = args.files.clone();
    let Some(far) = far else {
        return Interpreter::start(settings, memory::near(range, args.pages), STACK, files);
    };
    let (backing, told) = far::over(range, far)?;
    let mut lisp = Interpreter::start(settings, backing, STACK, files)?;
    lisp.report_too(move || told.table());
    Ok(lisp)
}

fn failed(cause: &str) -> i32 {
    complain!("largesse lisp: {cause}");
    1
}

/// Files, expressions, or the prompt; gives the exit status.
fn evaluate(lisp: &mut Interpreter, args: &Args) -> i32 {
    for file in &args.files {
        if let Err(ended) = lisp.load(file) {
            return status(ended);
        }
    }
    for expression in &args.expressions {
        if let Err(ended) = lisp.evaluate(expression) {
            return status(ended);
        }
    }
    if args.files.is_empty() && args.expressions.is_empty() {
        return prompt::run(lisp);
    }
    0
}

fn status(ended: Ended) -> i32 {
    match ended {
        Ended::Quit(status) => status,
        Ended::Interrupted => 130,
        Ended::Incomplete => failed("the text ends inside of a form"),
        Ended::Error(report) => {
            eprintln!("{report}");
            1
        }
    }
}
