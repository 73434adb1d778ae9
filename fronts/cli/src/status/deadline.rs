//! Looks at processes within deadlines, since a hostile process can delay its readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time for reading one process; blocks not read by then are left out.
const EACH: Duration = Duration::from_millis(800);
/// Time after [`EACH`] until a process is abandoned, because a read of a page that a FUSE server delays may never
/// return.
const GRACE: Duration = Duration::from_millis(200);
/// Longest time in which `status` reads processes; those not read by then are listed as left out.
const ALL: Duration = Duration::from_secs(4);
/// Number of processes that are read concurrently, so that a few slow ones do not delay the others.
const AT_ONCE: usize = 64;

/// Calls `look` with each process number and its deadline, on one thread for each process, and returns the results.
/// `None` stands for a process that was abandoned. Its thread runs until this command ends.
pub(super) fn look_at<T: Send + 'static>(
    pids: Vec<u32>,
    look: impl Fn(u32, Instant) -> T + Clone + Send + 'static,
) -> BTreeMap<u32, Option<T>> {
    let end = Instant::now() + ALL;
    let (sender, receiver) = mpsc::channel();
    let mut found: BTreeMap<u32, Option<T>> = pids.iter().map(|&pid| (pid, None)).collect();
    let mut ahead: VecDeque<u32> = pids.into();
    let mut begun: VecDeque<(u32, Instant)> = VecDeque::new();
    loop {
        while begun.len() < AT_ONCE
            && let Some(pid) = ahead.pop_front()
        {
            let (sender, look, deadline) = (sender.clone(), look.clone(), (Instant::now() + EACH).min(end));
            let thread = std::thread::Builder::new().stack_size(1 << 20);
            if thread.spawn(move || sender.send((pid, look(pid, deadline)))).is_ok() {
                begun.push_back((pid, deadline + GRACE));
            }
        }
        let Some(&(_, given_up)) = begun.front() else { return found };
        match receiver.recv_timeout(given_up.saturating_duration_since(Instant::now())) {
            Ok((pid, answer)) => {
                begun.retain(|(other, _)| *other != pid);
                found.insert(pid, Some(answer));
            }
            Err(_) => {
                begun.pop_front();
            }
        }
        if Instant::now() >= end + GRACE {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanging_process_is_abandoned() {
        let (hold, held) = mpsc::channel::<()>();
        let held = std::sync::Arc::new(std::sync::Mutex::new(held));
        let begun = Instant::now();
        let found = look_at((0..200).collect(), move |pid, _| {
            if pid == 3 {
                let _ = held.lock().unwrap().recv();
            }
            pid * 2
        });
        let took = begun.elapsed();
        drop(hold);
        assert!(took < ALL, "200 processes, one of which hangs, took {took:?}");
        assert_eq!((found.len(), found[&3], found[&199]), (200, None, Some(398)));
    }
}
