//! Denies system calls to this process and to the programs it starts, by a seccomp filter.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of the kernel's interface"
)]

use super::linux::errno;
use core::ffi::{c_int, c_long};
use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

/// The architecture (`AUDIT_ARCH_*`) whose system calls the filter judges, because 32-bit programs number their calls
/// differently. `OPEN` is the number of `open`, which exists on x86-64 only.
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "x86_64")]
const OPEN: u32 = number(libc::SYS_open);
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "aarch64")]
const OPEN: u32 = u32::MAX;

/// Offset into `struct seccomp_data` of the system call's number. `MACHINE` is that of the architecture, and
/// `argument` returns that of an argument's lower half.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const fn argument(which: u32) -> u32 {
    16 + 8 * which
}

const fn step(code: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

const fn load(place: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, place, 0, 0)
}

/// A step that continues with the next one if the loaded value equals `value`, and otherwise skips `else_skip` steps.
const fn is(value: u32, else_skip: u8) -> sock_filter {
    step(BPF_JMP | BPF_JEQ | BPF_K, value, 0, else_skip)
}

/// A step that skips the next `skip` steps.
const fn go_on(skip: u32) -> sock_filter {
    step(BPF_JMP, skip, 0, 0)
}

const fn answer(errno: c_int) -> sock_filter {
    step(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0)
}

const fn number(call: c_long) -> u32 {
    call as u32
}

/// Makes opening files for direct I/O fail as on a file system without it, and io_uring and `openat2` fail as on a
/// kernel without them.
pub(crate) fn refuse_direct_input() -> Result<(), i32> {
    let mut steps = [
        load(MACHINE),
        is(NATIVE, 17),
        load(NUMBER),
        is(number(libc::SYS_io_uring_setup), 1),
        answer(libc::ENOSYS),
        is(number(libc::SYS_openat2), 1),
        answer(libc::ENOSYS),
        is(number(libc::SYS_fcntl), 4),
        load(argument(1)),
        is(libc::F_SETFL as u32, 9),
        load(argument(2)),
        go_on(5),
        is(number(libc::SYS_openat), 2),
        load(argument(2)),
        go_on(2),
        is(OPEN, 3),
        load(argument(1)),
        step(BPF_JMP | BPF_JSET | BPF_K, libc::O_DIRECT as u32, 0, 1),
        answer(libc::EINVAL),
        step(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let install = || {
        // SAFETY: the program is whole and outlives the call; it applies to every thread of the process.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            )
        };
        if rc == 0 { Ok(()) } else { Err(errno()) }
    };
    install().or_else(|_| {
        // A process without privilege must first renounce set-user-ID programs.
        // SAFETY: PR_SET_NO_NEW_PRIVS takes no pointer.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        install()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::in_child;

    fn call(number: c_long, words: [c_long; 3]) -> Result<c_long, i32> {
        // SAFETY: callers pass numbers, and a C string where the call takes a path.
        let rc = unsafe { libc::syscall(number, words[0], words[1], words[2]) };
        if rc == -1 { Err(errno()) } else { Ok(rc) }
    }

    /// Runs in a child process, because a filter cannot be removed.
    #[test]
    fn only_direct_input_is_refused() {
        let path = c"/proc/self/exe".as_ptr().expose_provenance() as c_long;
        let direct = c_long::from(libc::O_DIRECT);
        let open = |flags| call(libc::SYS_openat, [libc::AT_FDCWD.into(), path, flags]);
        let file = open(0).unwrap();
        let flags = |which: c_int, flags| call(libc::SYS_fcntl, [file, which.into(), flags]);
        assert!(in_child(|| {
            refuse_direct_input().is_ok()
                && open(0).is_ok()
                && open(direct) == Err(libc::EINVAL)
                && flags(libc::F_SETFL, libc::O_APPEND.into()).is_ok()
                && flags(libc::F_SETFD, direct).is_ok()
                && flags(libc::F_SETFL, direct) == Err(libc::EINVAL)
                && call(libc::SYS_io_uring_setup, [1, 0, 0]) == Err(libc::ENOSYS)
        }));
        #[cfg(target_arch = "x86_64")]
        assert!(in_child(|| {
            let open = |flags| call(libc::SYS_open, [path, flags, 0]);
            refuse_direct_input().is_ok() && open(0).is_ok() && open(direct) == Err(libc::EINVAL)
        }));
    }
}
