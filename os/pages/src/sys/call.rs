//! Makes system calls by an instruction of our own instead of the C library's functions. A seccomp filter that looks
//! for calls from the C library may send a signal, and code that handles far memory faults could not wait for its
//! handler (`fronts/preload/src/io`).

#![expect(clippy::cast_possible_truncation, reason = "a register is as long as a number of the kernel's")]

use core::arch::asm;
use core::ffi::{c_int, c_long};

/// Makes a system call and returns its result, or -1 with the kernel's error in `errno`, as the C library's `syscall` does.
/// A front end may export its own function of that name.
///
/// # Safety
/// As [`raw_call`].
pub unsafe fn system_call(number: c_long, arguments: [usize; 6]) -> isize {
    const LEAST: isize = -4095;
    // SAFETY: the caller's promise.
    let answer = unsafe { raw_call(number, arguments) };
    if (LEAST..0).contains(&answer) {
        // SAFETY: `__errno_location` has no preconditions and returns this thread's valid slot.
        unsafe { *libc::__errno_location() = -answer as c_int };
        return -1;
    }
    answer
}

/// Makes a system call and returns the kernel's answer: a result, or a negated errno.
///
/// # Safety
/// The requirements are those of the system call `number`.
pub unsafe fn raw_call(number: c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's convention: these registers are inputs, `rcx` and `r11` are clobbered; the rest is the
    // caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; no other register is clobbered.
    unsafe {
        asm!(
            "svc 0",
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f, in("x8") number,
            options(nostack),
        );
    }
    answer
}
