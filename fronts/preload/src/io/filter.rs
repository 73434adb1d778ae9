//! Builds the `seccomp` filter that traps system calls of the C library with pointers into far memory.
//!
//! ```text
//!   number in the table? ─no─► allow
//!        │yes
//!   a pointer into far memory, or one to pointers? ─no─► allow
//!        │yes
//!   made by the C library's code? ─no─► allow
//!        └yes─► SIGSYS
//! ```
//! The kernel keeps the filter across `exec`, but not our handler. So the filter traps only calls from the addresses of
//! this process's C library; a program that is executed later has its C library at other addresses (`exec.rs`).

use super::calls::{CALLS, QUEUE, SIGNALS};
use super::raw;
use core::ffi::c_int;
use core::mem::offset_of;
use core::ops::Range;
use libc::{c_long, seccomp_data, sock_filter};

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const ABOVE: u16 = 0x25; // … BPF_JGT
const NOT_BELOW: u16 = 0x35; // … BPF_JGE
const JUMP: u16 = 0x05; // … BPF_JA
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const GO_ON: u32 = libc::SECCOMP_RET_ALLOW;
/// `AUDIT_ARCH_X86_64`, the architecture whose call numbers are in the table.
pub(super) const ARCH: u32 = 0xc000_003e;

/// Lists the calls that execute a program.
pub(super) const EXEC: [c_long; 2] = [libc::SYS_execve, libc::SYS_execveat];
/// Value of `si_errno` by which the handler recognises signals of the filter that [`for_exec`] returns.
pub(super) const PUT_OFF: u32 = 1;

/// Returns the filter that traps calls made by `code`, the C library's, with pointers into `far`; with `exec`, also
/// those of [`EXEC`].
pub(super) fn program(far: &[Range<usize>], code: &[Range<usize>], exec: bool) -> Vec<sock_filter> {
    let mut made = FilterProgram::new();
    // Indices of the arguments to compare, and the jumps of the calls that have pointers in these.
    let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    let nested = |it: &super::calls::Syscall| it.pointers.iter().any(super::calls::Pointer::is_nested);
    let pointers = |it: &super::calls::Syscall| it.pointers.iter().map(|pointer| pointer.argument).collect();
    let rows = CALLS.iter().map(|call| (call.number, (!nested(call)).then(|| pointers(call))));
    let mut always = Vec::new();
    for (number, arguments) in rows.chain(SIGNALS.iter().chain([&QUEUE]).map(|&number| (number, None))) {
        let jump = made.jump_if(number);
        let Some(arguments) = arguments else {
            always.push(jump);
            continue;
        };
        match groups.iter_mut().find(|(same, _)| *same == arguments) {
            Some((_, jumps)) => jumps.push(jump),
            None => groups.push((arguments, vec![jump])),
        }
    }
    if exec {
        always.extend(EXEC.map(|number| made.jump_if(number)));
    }
    let trace = made.jump_if(libc::SYS_ptrace);
    made.push(RETURN, 0, 0, GO_ON);
    made.land(&[trace]);
    const TRACE_ME: Range<usize> = libc::PTRACE_TRACEME as usize..libc::PTRACE_TRACEME as usize + 1;
    always.extend(made.within(offset_of!(seccomp_data, args), core::slice::from_ref(&TRACE_ME)));
    made.push(RETURN, 0, 0, GO_ON);
    for (arguments, jumps) in groups {
        made.land(&jumps);
        for argument in arguments {
            always.extend(made.within(offset_of!(seccomp_data, args) + 8 * argument, far));
        }
        made.push(RETURN, 0, 0, GO_ON);
    }
    made.trap(&always, code, 0)
}

/// Returns the filter, added to a process whose tracing begins when it executes a program, that traps [`EXEC`].
pub(super) fn for_exec(code: &[Range<usize>]) -> Vec<sock_filter> {
    let mut made = FilterProgram::new();
    let jumps = EXEC.map(|number| made.jump_if(number));
    made.push(RETURN, 0, 0, GO_ON);
    made.trap(&jumps, code, PUT_OFF)
}

/// Asks whether the kernel allows filters that raise a signal, and changes nothing. The error is its `errno`.
pub(super) fn is_available() -> Result<(), c_int> {
    let trap = libc::SECCOMP_RET_TRAP;
    let arguments = [libc::SECCOMP_GET_ACTION_AVAIL as usize, 0, (&raw const trap).addr(), 0, 0, 0];
    // SAFETY: the kernel reads one number, which lives until the call ends.
    let answer = unsafe { raw::call(libc::SYS_seccomp, arguments) };
    if answer == 0 { Ok(()) } else { Err(-answer as c_int) }
}

/// The threads that get a filter, besides those that they start later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilteredThreads {
    /// The calling one.
    Calling,
    /// All of the process.
    All,
}

/// Installs a filter. The error is the kernel's `errno`.
pub(super) fn install(program: &[sock_filter], threads: FilteredThreads) -> Result<(), c_int> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let mut flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW as usize;
    if threads == FilteredThreads::All {
        flags |= libc::SECCOMP_FILTER_FLAG_TSYNC as usize;
    }
    let arguments = [libc::SECCOMP_SET_MODE_FILTER as usize, flags, (&raw const program).addr(), 0, 0, 0];
    // SAFETY: the program is valid until the call ends, and the kernel checks it.
    let mut answer = unsafe { raw::call(libc::SYS_seccomp, arguments) };
    if answer == -(libc::EACCES as isize) {
        // A process without `CAP_SYS_ADMIN` must promise that no program it executes gains privileges.
        // SAFETY: numbers only.
        unsafe { raw::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]) };
        // SAFETY: as above.
        answer = unsafe { raw::call(libc::SYS_seccomp, arguments) };
    }
    match answer {
        0 => Ok(()),
        // The number of a thread that has another filter of its own.
        1.. => Err(libc::ESRCH),
        _ => Err(-answer as c_int),
    }
}

struct FilterProgram(Vec<sock_filter>);

impl FilterProgram {
    /// Begins a filter: it allows calls of other architectures, and loads the number of the call.
    fn new() -> FilterProgram {
        let mut made = FilterProgram(Vec::new());
        made.load(offset_of!(seccomp_data, arch));
        made.push(EQUAL, 1, 0, ARCH);
        made.push(RETURN, 0, 0, GO_ON);
        made.load(offset_of!(seccomp_data, nr));
        made
    }

    /// Ends a filter: `jumps` lead to a trap with `mark` if the call was made by `code`.
    fn trap(mut self, jumps: &[usize], code: &[Range<usize>], mark: u32) -> Vec<sock_filter> {
        self.land(jumps);
        let ours = self.within(offset_of!(seccomp_data, instruction_pointer), code);
        self.push(RETURN, 0, 0, GO_ON);
        self.land(&ours);
        self.push(RETURN, 0, 0, libc::SECCOMP_RET_TRAP | mark);
        self.0
    }

    /// Appends an instruction. A comparison skips `yes` instructions if it holds, and `no` if not.
    fn push(&mut self, code: u16, yes: u8, no: u8, k: u32) {
        self.0.push(sock_filter { code, jt: yes, jf: no, k });
    }

    fn load(&mut self, offset: usize) {
        self.push(LOAD, 0, 0, offset as u32);
    }

    /// Appends a jump that is taken if the loaded number is `number`. Returns the jump's index.
    fn jump_if(&mut self, number: c_long) -> usize {
        self.push(EQUAL, 0, 1, number as u32);
        self.jump()
    }

    /// Appends a jump whose target [`land`](FilterProgram::land) sets. Returns its index.
    fn jump(&mut self) -> usize {
        self.push(JUMP, 0, 0, 0);
        self.0.len() - 1
    }

    /// Sets the target of `jumps` to the next instruction.
    fn land(&mut self, jumps: &[usize]) {
        for &jump in jumps {
            self.0[jump].k = (self.0.len() - jump - 1) as u32;
        }
    }

    /// Appends jumps that are taken if the 64-bit number at `offset` lies in one of the ranges. Returns their indices.
    fn within(&mut self, offset: usize, ranges: &[Range<usize>]) -> Vec<usize> {
        let mut taken = Vec::new();
        for (high, low) in ranges.iter().flat_map(halves) {
            self.load(offset + 4);
            match low {
                None => {
                    self.push(NOT_BELOW, 0, 2, high.start);
                    self.push(ABOVE, 1, 0, high.end);
                }
                Some(low) => {
                    self.push(EQUAL, 0, 4, high.start);
                    self.load(offset);
                    self.push(NOT_BELOW, 0, 2, low.start);
                    self.push(ABOVE, 1, 0, low.end);
                }
            }
            taken.push(self.jump());
        }
        taken
    }
}

/// A range of 32-bit numbers that includes both of its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    start: u32,
    end: u32,
}

/// Splits a range of addresses into parts that 32-bit comparisons can test. In each, the upper half of an address is
/// one number and the lower half has bounds, or the upper half has bounds and the lower half is arbitrary.
fn halves(range: &Range<usize>) -> Vec<(Bounds, Option<Bounds>)> {
    let bounds = |start: usize, last: usize| Bounds { start: start as u32, end: last as u32 };
    let (mut at, mut found) = (range.start, Vec::new());
    while at < range.end {
        let next = (at + 1).next_multiple_of(1 << 32);
        let whole = range.end >> 32 << 32;
        if at.is_multiple_of(1 << 32) && whole > at {
            found.push((bounds(at >> 32, (whole - 1) >> 32), None));
            at = whole;
        } else {
            let end = next.min(range.end);
            found.push((bounds(at >> 32, at >> 32), Some(bounds(at, end - 1))));
            at = end;
        }
    }
    found
}

#[cfg(test)]
mod tests;
