//! Threads and the scheduler: where one runs, and how one gives way to all others.

/// The processor on which a thread of this process runs, or ran last; `None` when there is no such thread.
#[must_use]
pub fn processor_of(thread: u32) -> Option<u32> {
    /// Of `stat`, counted from the one behind the name, which may hold blanks and parentheses.
    const PROCESSOR: usize = 36;
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(PROCESSOR)?.parse().ok()
}

/// From now on the calling thread runs where nobody else wants to (`SCHED_IDLE`). Whom it wakes there stays there. An
/// ordinary user cannot take this back. `false`: it was refused.
#[must_use]
pub fn give_way() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure is read; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 }
}

/// How often the processor was taken from the calling thread.
#[must_use]
pub fn taken_away() -> i64 {
    // SAFETY: plain numbers, which the kernel fills in.
    unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

/// The time for which threads of this process have had a processor, all together.
#[must_use]
pub fn worked_by_all() -> std::time::Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: two plain numbers, which the kernel fills in.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    std::time::Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Number of threads of this process, with a first thread that has ended; `None` where `/proc` does not say.
#[must_use]
pub fn count() -> Option<u32> {
    status("Threads:")
}

/// Whether another process traces the calling thread, as debuggers do. `false` where `/proc` does not say.
#[must_use]
pub fn is_traced() -> bool {
    status("TracerPid:").is_some_and(|tracer| tracer != 0)
}

/// A number in the status of the calling thread.
fn status(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The status with which the first thread of this process ended, once it has; `None` where `/proc` does not say.
#[must_use]
pub fn exit_status_of_first() -> Option<i32> {
    /// Of `stat`, counted from the one behind the name, as `wait` reports it.
    const EXIT_CODE: usize = 49;
    let text = std::fs::read_to_string(format!("/proc/self/task/{}/stat", std::process::id())).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    let code: i32 = behind.split_ascii_whitespace().nth(EXIT_CODE)?.parse().ok()?;
    Some(libc::WEXITSTATUS(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitmap, pin};

    #[test]
    fn a_thread_is_where_it_was_pinned() {
        for cpu in pin::permitted().iter() {
            let seen = std::thread::spawn(move || {
                let one: Bitmap = [cpu].into_iter().collect();
                pin::thread(&one).unwrap();
                // SAFETY: no preconditions.
                processor_of(unsafe { libc::gettid() }.cast_unsigned())
            });
            assert_eq!(seen.join().unwrap(), Some(cpu));
        }
        assert_eq!(processor_of(u32::MAX), None);
    }

    // Seen to fail when the calling thread's alone counts.
    #[test]
    fn the_work_of_another_thread_counts() {
        let start = worked_by_all();
        let work = move || while worked_by_all() - start < std::time::Duration::from_millis(5) {};
        std::thread::spawn(work).join().unwrap();
        assert!(worked_by_all() - start >= std::time::Duration::from_millis(5));
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
    fn who_gives_way_is_of_the_idle_class() {
        let policy = std::thread::spawn(|| {
            assert!(give_way());
            // SAFETY: 0 is the calling thread.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(policy.join().unwrap(), libc::SCHED_IDLE);
    }
}
