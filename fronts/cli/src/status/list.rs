//! Lists the processes that have large blocks, one a line.

use super::deadline;
use super::error::StatusError;
use super::process::{self, Process};
use super::process_list::{LeftOut, ProcessList, Summary};
use super::process_snapshot::ProcessSnapshot;
use super::table;
use largesse_terminal::table::Paper;
use std::time::Instant;

pub(super) fn of_all(json: bool) -> Result<String, StatusError> {
    let mut found = ProcessList::default();
    // Few processes have a report: the others are sorted out before any report is read.
    let opened = deadline::look_at(process::all()?, |pid, _| has_report(pid));
    let mut reported = Vec::new();
    for (pid, answer) in opened {
        match answer {
            Some(Ok(true)) => reported.push(pid),
            Some(Err(StatusError::Denied { .. })) => found.not_permitted += 1,
            _ => {}
        }
    }
    for (pid, answer) in deadline::look_at(reported, look) {
        match answer.unwrap_or(Err(StatusError::Slow { pid })) {
            Ok(Some(summary)) => found.processes.push(summary),
            Err(error @ (StatusError::Report { .. } | StatusError::Slow { .. })) => {
                found.left_out.push(LeftOut { pid, why: error.to_string() });
            }
            // The process has ended since, belongs to the kernel, or does not use the library.
            _ => {}
        }
    }
    Ok(if json {
        serde_json::to_string(&found).unwrap_or_default()
    } else {
        table::of_all(&found, Paper::here())
    })
}

fn has_report(pid: u32) -> Result<bool, StatusError> {
    Process::open(pid).map(|process| process.has_signpost())
}

fn look(pid: u32, deadline: Instant) -> Result<Option<Summary>, StatusError> {
    let process = Process::open(pid)?;
    let Some(heap) = process.heap(deadline)? else { return Ok(None) };
    let snapshot = ProcessSnapshot::of(&process, &heap, deadline);
    Ok(Some(Summary {
        pid,
        command: snapshot.command,
        pages: snapshot.pages,
        blocks: snapshot.totals.blocks,
        left_out: snapshot.left_out,
        bytes: snapshot.totals.bytes,
        resident_bytes: snapshot.totals.resident_bytes,
        large_bytes: snapshot.totals.large_bytes,
        not_granted: snapshot.not_granted.iter().map(|one| one.count).fold(0, u64::saturating_add),
    }))
}
