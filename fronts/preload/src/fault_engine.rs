//! Chooses the fault engine of far memory for a process.

use crate::message;
use largesse_machine::thread;
use largesse_paging::FaultEngine;

/// Returns `wanted`, or another engine, with a line on standard error, if a debugger or tracer would stop at each fault.
pub(crate) fn choose(wanted: FaultEngine) -> FaultEngine {
    if wanted != FaultEngine::Thread || !thread::is_traced() {
        return wanted;
    }
    message::warn(
        "a debugger or tracer stops at each signal: far pages are served by userfaultfd, \
         not by --fault-engine thread",
    );
    FaultEngine::Auto
}

/// How system calls of the program use far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemCalls {
    /// They wait in the kernel.
    Wait,
    /// A filter sends them to this library, which makes their pages resident.
    Filtered {
        /// Whether the handler of the in-thread engine is needed, too.
        in_thread: bool,
    },
}
