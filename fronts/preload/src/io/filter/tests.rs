use super::*;

/// Interprets a filter as the kernel does, and returns its verdict.
fn answer(program: &[sock_filter], call: &seccomp_data) -> u32 {
    // SAFETY: a plain structure without padding is readable as bytes.
    let bytes =
        unsafe { core::slice::from_raw_parts((&raw const *call).cast::<u8>(), size_of::<seccomp_data>()) };
    let (mut at, mut word) = (0, 0_u32);
    loop {
        let now = program[at];
        at += 1;
        let skip = |yes| usize::from(if yes { now.jt } else { now.jf });
        match now.code {
            LOAD => word = u32::from_ne_bytes(bytes[now.k as usize..][..4].try_into().unwrap()),
            EQUAL => at += skip(word == now.k),
            ABOVE => at += skip(word > now.k),
            NOT_BELOW => at += skip(word >= now.k),
            JUMP => at += now.k as usize,
            RETURN => return now.k,
            code => panic!("{code:#x}"),
        }
    }
}

fn call(number: libc::c_long, ip: usize, args: [u64; 6]) -> seccomp_data {
    seccomp_data { nr: number as i32, arch: ARCH, instruction_pointer: ip as u64, args }
}

const FAR: [Range<usize>; 2] = [0x12_3456_7000..0x15_0000_1000, 0x40_5000..0x90_0000];
const CODE: Range<usize> = 0x7f12_3450_0000..0x7f12_3460_0000;

#[track_caller]
fn check(number: libc::c_long, ip: usize, args: [u64; 6], trapped: bool) {
    let got = answer(&program(&FAR, &[CODE], false), &call(number, ip, args));
    assert_eq!(got == libc::SECCOMP_RET_TRAP, trapped, "{number} {ip:#x} {args:x?}");
}

#[test]
fn only_far_pointers_are_trapped() {
    let ip = CODE.start + 5;
    for range in FAR {
        for (at, far) in [
            (range.start - 1, false),
            (range.start, true),
            (range.start + (range.len() / 2), true),
            (range.end - 1, true),
            (range.end, false),
        ] {
            check(libc::SYS_read, ip, [0, at as u64, 5, 0, 0, 0], far);
            check(libc::SYS_read, ip, [at as u64, 0x10, 5, at as u64, 0, 0], false);
            check(libc::SYS_recvfrom, ip, [0, 0x10, 5, 0, 0, at as u64], far);
            check(libc::SYS_mprotect, ip, [at as u64, 4096, 0, 0, 0, 0], false);
            check(libc::SYS_read, CODE.start - 1, [0, at as u64, 5, 0, 0, 0], false);
            check(libc::SYS_read, CODE.end, [0, at as u64, 5, 0, 0, 0], false);
        }
    }
}

#[test]
fn nested_pointers_and_signals_are_trapped() {
    for number in [
        libc::SYS_writev,
        libc::SYS_recvmsg,
        libc::SYS_ioctl,
        libc::SYS_setsockopt,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
    ] {
        check(number, CODE.start, [0; 6], true);
        check(number, CODE.end, [0; 6], false);
    }
}

#[test]
fn other_architectures_are_allowed() {
    let other = seccomp_data { arch: 0x4000_0003, ..call(libc::SYS_writev, CODE.start, [0; 6]) };
    assert_eq!(answer(&program(&FAR, &[CODE], false), &other), GO_ON);
}

#[test]
fn filter_length_is_within_the_limit() {
    let program = program(&[FAR[0].clone(), 0x7f00_0000_1000..0x7fff_0000_1000], &[CODE, CODE, CODE], true);
    assert!(program.len() <= 4096, "{}", program.len());
}

#[test]
fn exec_is_trapped_on_request() {
    for number in EXEC {
        for (filter, wanted) in [
            (program(&FAR, &[CODE], false), GO_ON),
            (program(&FAR, &[CODE], true), libc::SECCOMP_RET_TRAP),
            (for_exec(&[CODE]), libc::SECCOMP_RET_TRAP | PUT_OFF),
        ] {
            assert_eq!(answer(&filter, &call(number, CODE.start, [0; 6])), wanted, "call {number}");
            assert_eq!(
                answer(&filter, &call(number, CODE.end, [0; 6])),
                GO_ON,
                "call {number} of other code"
            );
        }
    }
}

#[test]
fn only_traceme_of_ptrace_is_trapped() {
    check(libc::SYS_ptrace, CODE.start, [libc::PTRACE_TRACEME as u64, 0, 0, 0, 0, 0], true);
    check(libc::SYS_ptrace, CODE.start, [libc::PTRACE_CONT as u64, 5, 0, 0, 0, 0], false);
    check(libc::SYS_ptrace, CODE.start, [1 << 32, 5, 0, 0, 0, 0], false);
}
