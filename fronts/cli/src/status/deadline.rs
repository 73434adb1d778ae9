//! Looking at processes that may do all they can to be slow.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time for reading one process; what has not been read by then is left out.
const EACH: Duration = Duration::from_millis(800);
/// A process is given up this long after `EACH`: a read may not return, say of a page that a FUSE server holds back.
const GRACE: Duration = Duration::from_millis(200);
/// Time for all processes of one call.
const ALL: Duration = Duration::from_secs(4);
/// Processes that are read at the same time: a few slow ones do not keep the others waiting.
const AT_ONCE: usize = 64;

/// Calls `look` with the number of each process and the moment by which it should return, on a thread for each.
/// The result is in the order of the numbers; `None` stands for a process that was given up, whose thread
/// stays until this process ends.
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
    fn one_that_hangs_is_given_up() {
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
