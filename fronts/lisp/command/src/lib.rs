//! Runs `largesse-lisp`, which `largesse lisp` executes: files, expressions, or a prompt.
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod arguments;
mod exit;
mod far;
mod interrupt;
mod memory;
mod prompt;

use crate::arguments::{Args, Synchronisation, Words};
use crate::exit::{failed, status};
use clap::CommandFactory as _;
use largesse_gc::{GcSettings, Sync};
use largesse_lisp::Interpreter;
use largesse_paging::FarConfig;
use largesse_terminal::command_line;
use largesse_terminal::say::{self, complain, complain_lines};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

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
    let words: Vec<OsString> = std::env::args_os().collect();
    let Words { args, program } = match arguments::parse(&words) {
        Ok(words) => words,
        Err(error) => return command_line::ended(error),
    };
    // This must come first: ranks of a launcher fork, which needs a process with one thread.
    let far = match largesse_far::config(args.local.as_ref(), args.far.as_ref(), args.page_size.as_ref()) {
        Ok(far) => far,
        Err(error) => {
            complain_lines!("largesse lisp: {error}");
            return error.exit_code();
        }
    };
    interrupt::block();
    let status = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lisp".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, || run_here(&args, program, far.as_ref())) {
            Ok(thread) => thread.join().unwrap_or(101),
            Err(cause) => {
                complain!("largesse lisp: no thread with a stack of {STACK} bytes: {cause}");
                1
            }
        }
    });
    // The pool's workers may still run, so the process ends with the first thread.
    std::process::exit(say::end_with(status))
}

fn run_here(args: &Args, program: Vec<String>, far: Option<&FarConfig>) -> i32 {
    let defaults = GcSettings::default();
    let settings = GcSettings {
        sync: match args.sync {
            Synchronisation::Mutex => Sync::Mutex,
            Synchronisation::Rwlock => Sync::Rwlock,
            Synchronisation::Safepoint => Sync::Safepoint,
        },
        limit: args.heap.unwrap_or_else(|| memory::default_limit(far.is_some())),
        floor: far.and_then(memory::floor).unwrap_or(memory::FLOOR),
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
    let mut lisp = match start(args, program, settings, far) {
        Ok(lisp) => ManuallyDrop::new(lisp),
        Err(cause) => return failed(&cause),
    };
    interrupt::install(lisp.interrupt());
    let status = evaluate(&mut lisp, args);
    if args.stats {
        complain_lines!("{}", lisp.memory_report().trim_end());
    }
    status
}

/// Starts a Lisp whose heap is in local memory, or in far memory if `far` is given.
fn start(
    args: &Args,
    program: Vec<String>,
    settings: GcSettings,
    far: Option<&FarConfig>,
) -> Result<Interpreter, String> {
    let range = memory::reserve(settings.limit)?;
    let files = args.files.iter().cloned().chain(program).collect();
    let Some(far) = far else {
        return Interpreter::start(settings, memory::near(range, args.pages), STACK, files);
    };
    let (backing, report) = far::over(range, far)?;
    let mut lisp = Interpreter::start(settings, backing, STACK, files)?;
    lisp.report_too(move || report.table());
    Ok(lisp)
}

/// Runs the files and the forms among them, then the expressions, or else the prompt; returns the exit status.
fn evaluate(lisp: &mut Interpreter, args: &Args) -> i32 {
    for word in &args.files {
        let done = if word.starts_with('(') { lisp.evaluate(word).map(|_| ()) } else { lisp.load(word) };
        if let Err(ended) = done {
            return status(ended);
        }
    }
    for expression in &args.expressions {
        if let Err(ended) = lisp.evaluate(expression) {
            return status(ended);
        }
    }
    let done = if args.files.is_empty() && args.expressions.is_empty() { prompt::run(lisp) } else { 0 };
    match lisp.finish() {
        Ok(()) => done,
        Err(ended) => status(ended),
    }
}
