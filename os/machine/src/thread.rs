//! Queries threads, and sets the scheduling policy of the calling one.

use std::path::Path;

/// Returns the kernel's number of the calling thread.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "glibc has the function `gettid` since version 2.30 only")]
pub fn id() -> u32 {
    // SAFETY: no preconditions.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).expect("numbers of threads are positive and have 22 bits at most")
}

/// Returns the processor on which a thread of this process runs or last ran, or `None` if there is no such thread.
#[must_use]
pub fn processor_of(thread: u32) -> Option<u32> {
    /// Index of the processor's number in `/proc/self/task/TID/stat`, among the fields after the thread's name. (The
    /// name may contain blanks and parentheses.)
    const PROCESSOR: usize = 36;
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok()
}

/// Sets the policy `SCHED_IDLE` for the calling thread, which then runs only when no other thread needs its processor.
/// Threads that it wakes stay on that processor. An ordinary user cannot reverse this. Returns whether the kernel
/// granted it.
#[must_use]
pub fn set_idle_policy() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure is read; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

/// Returns the number of involuntary context switches of the calling thread.
#[must_use]
pub fn involuntary_switches() -> i64 {
    // SAFETY: plain numbers, which the kernel fills in.
    unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

/// Returns the processor time used by all threads of this process.
#[must_use]
pub fn process_cpu_time() -> std::time::Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: two plain numbers, which the kernel fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    std::time::Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Returns the number of threads of this process, including a first thread that has ended, or `None` if `/proc` does
/// not say. The kernel's own workers for `io_uring(7)` are not counted, although `/proc` lists them.
#[must_use]
pub fn count() -> Option<u32> {
    // A worker that is there before and after was there when the threads were counted. Others may be new or gone: taken off,
    // they would hide a thread of the program.
    let before = io_workers();
    let threads = status("Threads:")?;
    let after = if before.is_empty() { Vec::new() } else { io_workers() };
    let both = after.iter().filter(|worker| before.contains(worker)).count();
    Some(threads.saturating_sub(u32::try_from(both).unwrap_or(u32::MAX)))
}

/// Returns the numbers of the kernel's threads that work on this process's requests to `io_uring`.
fn io_workers() -> Vec<std::ffi::OsString> {
    /// Index of the thread's flags in its `stat` file, among the fields after the name.
    const FLAGS: usize = 6;
    /// The kernel's flag `PF_IO_WORKER`.
    const IO_WORKER: u32 = 0x10;
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let is_worker = |thread: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let flags = fields.split(' ').nth(FLAGS).and_then(|flags| flags.parse::<u32>().ok());
        flags.is_some_and(|flags| flags & IO_WORKER != 0)
    };
    threads.flatten().filter(is_worker).map(|thread| thread.file_name()).collect()
}

/// A view of another thread of this process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Whether the thread sleeps until another thread of this process wakes it: in `futex(2)`, without a deadline, on a
    /// word that other processes do not see, or until another thread has ended.
    pub sleeps: bool,
    /// Bit set of the signals that the thread blocks.
    pub blocked: u64,
}

/// Returns the numbers of all threads of this process, or `None` if `/proc` does not say.
#[must_use]
pub fn all() -> Option<Vec<u32>> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    threads.map(|thread| thread.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Returns what a thread of this process does, or `None` if `/proc` does not say.
#[must_use]
pub fn activity(thread: u32) -> Option<Activity> {
    let read = |file| std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let status = read("status")?;
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
    // After the mask: a thread that sleeps now, and was asleep, has not changed it.
    let call = read("syscall")?;
    let is_other =
        |number: u64| number != thread.into() && Path::new(&format!("/proc/self/task/{number}")).exists();
    Some(Activity {
        sleeps: is_sleep(&call, is_other),
        blocked: u64::from_str_radix(blocked.trim(), 16).ok()?,
    })
}

/// Returns whether the text of a thread's `syscall` file tells such a sleep: the number of the call and its arguments.
/// `pthread_join` does not sleep on a private futex, but on the number of the thread that is to end: `is_other` says
/// whether a number is that of another thread.
fn is_sleep(call: &str, is_other: impl Fn(u64) -> bool) -> bool {
    let mut words = call.split_ascii_whitespace();
    let is_futex = words.next().and_then(|number| number.parse().ok()) == Some(libc::SYS_futex);
    let argument = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let [Some(_), Some(operation), Some(value), Some(deadline)] =
        [(); 4].map(|()| words.next().and_then(argument))
    else {
        return false;
    };
    let Ok(operation) = i32::try_from(operation) else { return false };
    let is_own = operation & libc::FUTEX_PRIVATE_FLAG != 0 || is_other(value);
    let command = operation & libc::FUTEX_CMD_MASK;
    is_futex && is_own && deadline == 0 && matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
}

/// Returns whether another process, such as a debugger, traces the calling thread. Returns `false` if `/proc` does not
/// say.
#[must_use]
pub fn is_traced() -> bool {
    status("TracerPid:").is_some_and(|tracer| tracer != 0)
}

/// Returns the number in the line `name` of the calling thread's `/proc/thread-self/status`.
fn status(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Returns whether this process's first thread has ended, or `None` if `/proc` does not say.
#[must_use]
pub fn first_has_ended() -> Option<bool> {
    of_first(0).map(|state| state == "Z" || state == "X")
}

/// Returns the exit status of this process's first thread after it has ended, or `None` if `/proc` does not say.
#[must_use]
pub fn exit_status_of_first() -> Option<i32> {
    /// Index of the exit code. Its format is that of `wait`.
    const EXIT_CODE: usize = 49;
    of_first(EXIT_CODE)?.parse().ok().map(|code| libc::WEXITSTATUS(code))
}

/// Returns a field of the `stat` file of this process's first thread, by its index among the fields after the name.
fn of_first(field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{}/stat", std::process::id())).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(field).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitmap, pin};

    #[test]
    fn pinned_thread_reports_its_processor() {
        for cpu in pin::permitted().iter() {
            let seen = std::thread::spawn(move || {
                let one: Bitmap = [cpu].into_iter().collect();
                pin::thread(&one).unwrap();
                processor_of(id())
            });
            assert_eq!(seen.join().unwrap(), Some(cpu));
        }
        assert_eq!(processor_of(u32::MAX), None);
    }

    // Fails if only the calling thread's time is counted.
    #[test]
    fn cpu_time_includes_other_threads() {
        let start = process_cpu_time();
        let work = move || while process_cpu_time() - start < std::time::Duration::from_millis(5) {};
        std::thread::spawn(work).join().unwrap();
        assert!(process_cpu_time() - start >= std::time::Duration::from_millis(5));
    }

    #[test]
    fn sleeps_that_only_this_process_ends_are_recognised() {
        for (call, want) in [
            ("202 0x7f00 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7fff", true),
            ("202 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7fff", true),
            ("202 0x7f00 0x80 0x0 0x7ffd 0x0 0x0 0x7ffe 0x7fff", false), // with a deadline
            ("202 0x7f00 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7fff", false),     // shared with other processes
            ("202 0x7f00 0x109 0x10d3 0x0 0x0 0xffffffff 0x7ffe 0x7fff", true), // it joins a thread
            ("202 0x7f00 0x109 0x10d4 0x0 0x0 0xffffffff 0x7ffe 0x7fff", false),
            ("202 0x7f00 0x81 0x1 0x0 0x0 0x0 0x7ffe 0x7fff", false), // it wakes
            ("0 0x3 0x80 0x1 0x0 0x0 0x0 0x7ffe 0x7fff", false),
            ("-1 0x7ffe 0x7fff", false),
            ("running", false),
        ] {
            assert_eq!(
                is_sleep(call, |number| number == 0x10d3),
                want && cfg!(target_arch = "x86_64"),
                "{call}"
            );
        }
    }

    #[test]
    fn first_thread_of_the_tests_lives() {
        assert_eq!(first_has_ended(), Some(false));
    }

    #[test]
    fn running_threads_are_counted() {
        let before = count().unwrap();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (into, from) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            into.send(count().unwrap()).unwrap();
            let _ = stopped.recv();
        });
        assert!(from.recv().unwrap() >= 2, "the counting thread and this one; {before} before");
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn idle_policy_is_set() {
        let policy = std::thread::spawn(|| {
            assert!(set_idle_policy());
            // SAFETY: 0 is the calling thread.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(policy.join().unwrap(), libc::SCHED_IDLE);
    }
}
