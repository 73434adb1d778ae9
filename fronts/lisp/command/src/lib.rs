//! Runs `largesse-lisp`, which `largesse lisp` executes: files, expressions, or a prompt.
#![expect(clippy::disallowed_macros, reason = "a front prints")]
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod exit;
mod far;
mod interrupt;
mod memory;
mod prompt;

use crate::exit::{failed, status};
use clap::{CommandFactory, Parser, ValueEnum};
use largesse_gc::{GcSettings, Sync};
use largesse_lisp::Interpreter;
use largesse_paging::FarConfig;
use largesse_terminal::say::complain;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

/// Run Lisp: a dialect of EusLisp whose heap is delegated to threads.
///
/// Files are loaded, then expressions are evaluated; without either, a prompt reads forms. Exit status: the argument
/// of `(exit n)`, 1 after an error, 130 after Ctrl-C, 74 when far memory is lost.
#[derive(Debug, Parser)]
#[command(name = "largesse-lisp", bin_name = "largesse lisp", version)]
struct Args {
    /// Files to load, in order
    files: Vec<String>,
    /// Evaluate this expression after the files; may be repeated
    #[arg(short, long = "eval", value_name = "EXPR")]
    expressions: Vec<String>,
    /// Limit the heap to this size, e.g. 512M, 4G [default: half of the machine's memory, or four times
    /// the machine's memory with --local]
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    heap: Option<usize>,
    /// Choose how threads that allocate are synchronized with each other
    #[arg(long, value_enum, default_value_t = Synchronisation::Safepoint)]
    sync: Synchronisation,
    /// Collect garbage with this many threads [default: one a processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    gc_threads: Option<u16>,
    /// Choose the page size of the heap
    #[arg(long, value_enum, default_value_t = memory::HeapPages::Thp, conflicts_with = "local")]
    pages: memory::HeapPages,
    /// Keep at most this much of the heap in local memory, as 4G, 512M or 50% (of the heap); the rest is
    /// in a store
    #[arg(long, value_name = "SIZE|PERCENT", allow_hyphen_values = true, help_heading = "Far memory")]
    local: Option<OsString>,
    /// Keep the rest in this store, named as for `largesse run` [default: a file in $TMPDIR or /var/tmp]
    #[arg(long, value_name = "STORE", allow_hyphen_values = true, help_heading = "Far memory")]
    far: Option<OsString>,
    /// Move this many bytes between memory and store at a time: auto, or 4K, 8K … 2M [default: auto]
    #[arg(long, value_name = "auto|SIZE", allow_hyphen_values = true, help_heading = "Far memory")]
    page_size: Option<OsString>,
    /// Print what was allocated and how, at the end
    #[arg(long)]
    stats: bool,
    /// Collect at every n-th allocation, verify the heap afterwards, and overwrite dead objects: for tests
    #[arg(long, value_name = "N", hide = true, default_value_t = 0)]
    stress: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Synchronisation {
    /// One lock around every allocation, without delegation
    Mutex,
    /// Delegation under a read lock, which a collection takes for writing
    Rwlock,
    /// Delegation without any lock; threads stop at safepoints
    Safepoint,
}

/// Bytes of the first thread's stack.
const STACK: usize = 256 << 20;
/// Words of each thread's root stack: reserved address space, of which only used pages get memory.
const ROOTS: usize = 1 << 22;

/// Returns the description of the command line, from which manual pages and completions are made.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    // This must come first: ranks of a launcher fork, which needs a process with one thread.
    let far = match largesse_far::config(args.local.as_ref(), args.far.as_ref(), args.page_size.as_ref()) {
        Ok(far) => far,
        Err(error) => {
            complain!("largesse lisp: {error}");
            return error.exit_code();
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
    // The pool's workers may still run, so the process ends with the first thread.
    std::process::exit(status)
}

fn run_here(args: &Args, far: Option<&FarConfig>) -> i32 {
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
    // The heap is not dropped: workers of the pool and threads that handle faults may use it until the process ends.
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

/// Starts a Lisp whose heap is in local memory, or in far memory if `far` is given.
fn start(args: &Args, settings: GcSettings, far: Option<&FarConfig>) -> Result<Interpreter, String> {
    let range = memory::reserve(settings.limit)?;
    let files = args.files.clone();
    let Some(far) = far else {
        return Interpreter::start(settings, memory::near(range, args.pages), STACK, files);
    };
    let (backing, report) = far::over(range, far)?;
    let mut lisp = Interpreter::start(settings, backing, STACK, files)?;
    lisp.report_too(move || report.table());
    Ok(lisp)
}

/// Runs the files, then the expressions, or else the prompt; returns the exit status.
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
