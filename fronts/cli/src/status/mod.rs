//! `largesse status`: shows every large block of a process and the pages it really has.
//!
//! # Picture
//! ```text
//!   /proc/PID/maps ─► process: the signpost's address
//!   /proc/PID/mem ──► decode: signpost ► report ► records     (untrusted)
//!   page tables ────► residency: bytes in memory, on large pages, NUMA node
//!                     process_snapshot ─► table, or one JSON object
//! ```
//! # Knows / does not know
//! Knows where a process publishes its report, and how to read it without its help: no socket, no signal, no file.
//! Does not know how the blocks were allocated.
//! # Invariants
//! 1. The target may die, lie or change while it is read: every length is bounded, every address is checked, and the
//!    worst outcome is a message.
//! 2. Reading one process takes at most a second, and reading all of them a few seconds (`deadline.rs`).

mod deadline;
mod decode;
mod error;
mod list;
mod process;
mod process_list;
mod process_snapshot;
mod residency;
mod table;

use error::StatusError;
use largesse_terminal::say::{complain, say};
use largesse_terminal::table::Paper;
use process::Process;
use process_snapshot::ProcessSnapshot;
use std::process::ExitCode;
use std::time::Instant;

/// Show every large block of a process and the pages it really has.
///
/// Without PID, lists all processes that have large blocks and may be looked at, one a line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show this process
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,
    /// Print one JSON object instead of tables, with sizes in bytes
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let text = match args.pid {
        None => list::of_all(args.json),
        Some(pid) => {
            let json = args.json;
            let mut found = deadline::look_at(vec![pid], move |pid, deadline| of_one(pid, json, deadline));
            found.remove(&pid).flatten().unwrap_or(Err(StatusError::Slow { pid }))
        }
    };
    match text {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            say!("{}", lines.join("\n").trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain!("largesse: {error}");
            ExitCode::FAILURE
        }
    }
}

fn of_one(pid: u32, json: bool, deadline: Instant) -> Result<String, StatusError> {
    let process = Process::open(pid)?;
    let Some(heap) = process.heap(deadline)? else {
        return if json {
            Ok(serde_json::json!({ "pid": pid, "command": process.command, "blocks": [] }).to_string())
        } else {
            Ok(format!("Process {pid} ({}) has the library, but no large block yet.", process.command))
        };
    };
    let snapshot = ProcessSnapshot::of(&process, &heap, deadline);
    Ok(if json { snapshot.json() } else { table::full(&snapshot, Paper::here()) })
}
