//! Finds out whether a filter of system calls can be added to the program's other threads.
//!
//! A thread could be in a system call whose memory the kernel still needs, or could be about to make one with the
//! filter's signal blocked, which kills. Neither is so for a thread that sleeps until another thread of the process wakes
//! it, with that signal open, while the only thread that runs is the one that asks. Idle threads of numerical libraries
//! sleep like that.

use crate::guard;
use crate::io::FilteredThreads;
use core::time::Duration;
use largesse_machine::service;
use largesse_machine::thread::{self, Activity};
use largesse_pages::descriptors;

/// Number of times, a millisecond apart, that threads are looked at: one may be about to sleep, and a service thread that
/// begins or ends looks like one of the program. Idle threads of OpenBLAS spin for some 30 ms before they sleep, which
/// takes ten times as long where other programs use all processors.
const LOOKS: u32 = 1000;

/// Returns to which threads a filter can be added that needs `signals`, a bit set. The error is the reason why that is not
/// safe.
pub(crate) fn look(signals: u64) -> Result<FilteredThreads, String> {
    let own = largesse_pages::thread_id();
    // Asked in a thread with descriptors of its own, since the program may rely on the numbers of its next ones.
    let look = || {
        let _ = descriptors::own_table();
        let mut last = Err("its threads cannot be counted (/proc)".to_owned());
        for _ in 0..LOOKS {
            last = look_once(own, signals);
            if last.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        last
    };
    // `outside`, because starting a thread allocates.
    guard::outside(|| service::ask(look)).unwrap_or_else(|error| Err(error.to_string()))
}

fn look_once(own: u32, signals: u64) -> Result<FilteredThreads, String> {
    let all = thread::all().ok_or("its threads cannot be listed (/proc)")?;
    let others: Vec<u32> =
        all.into_iter().filter(|&thread| thread != own && !service::is_listed(thread)).collect();
    for thread in &others {
        let why = match thread::activity(*thread) {
            Some(Activity { sleeps: true, blocked }) if blocked & signals == 0 => continue,
            Some(Activity { sleeps: true, .. }) => "blocks SIGSYS or SIGBUS",
            _ => "is at work, or waits for an event",
        };
        return Err(format!("its system calls must be filtered, and thread {thread} of it {why}"));
    }
    Ok(if others.is_empty() { FilteredThreads::Calling } else { FilteredThreads::All })
}
