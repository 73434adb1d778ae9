//! Pins the calling thread, or every thread of the process, to processors.
//!
//! The kernel grants the part of a request that a cpuset permits, and does not report the rest. These functions return
//! an error instead, and leave the affinity as it was.

use crate::Bitmap;
use crate::affinity::{self, ME, WORDS};
use crate::service;
use crate::unread::{self, Unread};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

pub use crate::affinity::Mask;

/// The reason for which a thread could not be pinned. Its affinity has not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinError {
    /// The set of processors is empty.
    Empty,
    /// Some processors do not exist, or are offline.
    NoSuchCpu {
        /// The requested processors that are not online.
        cpus: Bitmap,
        /// The processors that are online.
        online: Bitmap,
    },
    /// The processors exist, but a cpuset of the control group forbids them to this process.
    NotPermitted {
        /// The requested processors that are forbidden.
        cpus: Bitmap,
        /// The processors that are permitted.
        permitted: Bitmap,
    },
    /// Some processors do not exist, are offline or are not permitted. The file `unread`, which would say which of
    /// these it is, cannot be read.
    Refused {
        /// The requested processors that cannot be used.
        cpus: Bitmap,
        /// The processors on which this process may run.
        permitted: Bitmap,
        /// The file that lists the online processors, and why it cannot be read.
        unread: Unread,
    },
    /// The threads of the process are not known, because this directory cannot be read.
    Unread(Unread),
    /// The kernel refused for another reason.
    Kernel {
        /// The `errno` that the kernel returned.
        errno: i32,
    },
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = |cpus: &Bitmap| if cpus.len() == 1 { "processor" } else { "processors" };
        match self {
            PinError::Empty => write!(f, "no processor was named"),
            PinError::NoSuchCpu { cpus, online } => {
                let (does, is) = if cpus.len() == 1 { ("does", "is") } else { ("do", "are") };
                write!(
                    f,
                    "{} {cpus} {does} not exist, or {is} offline; this machine has {online} online",
                    noun(cpus)
                )
            }
            PinError::NotPermitted { cpus, permitted } => write!(
                f,
                "this process may not run on {} {cpus}: its control group (cpuset) permits {permitted}",
                noun(cpus)
            ),
            PinError::Refused { cpus, permitted, unread } => write!(
                f,
                "this process cannot run on {} {cpus}, only on {permitted}; why is not known: {unread}",
                noun(cpus)
            ),
            PinError::Unread(unread) => write!(f, "the threads of this process are not known: {unread}"),
            PinError::Kernel { errno } => {
                write!(f, "the kernel refused: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for PinError {}

/// Returns the current affinity of the calling thread.
pub fn current() -> Result<Bitmap, PinError> {
    affinity_of(ME)
}

/// Returns the current affinity of the thread with this kernel number, where 0 is the calling thread. It allocates
/// nothing.
pub fn mask_of(thread: u32) -> Result<Mask, PinError> {
    let thread = i32::try_from(thread).map_err(|_| PinError::Kernel { errno: libc::ESRCH })?;
    affinity::get(thread).map_err(|errno| PinError::Kernel { errno })
}

/// Pins the calling thread to these processors. Threads and programs that it starts later inherit its affinity.
pub fn thread(cpus: &Bitmap) -> Result<(), PinError> {
    keep(ME, cpus)
}

/// Pins every thread of the process to these processors. After an error no thread is pinned.
pub fn process(cpus: &Bitmap) -> Result<(), PinError> {
    let mut before = BTreeMap::new();
    // A thread that was not seen yet may have been started by one that was not pinned yet.
    loop {
        let new: Vec<i32> = threads()?.into_iter().filter(|thread| !before.contains_key(thread)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for thread in new {
            let now = affinity_of(thread).and_then(|now| keep(thread, cpus).map(|()| now));
            match now {
                Ok(now) => _ = before.insert(thread, now),
                // The thread has ended.
                Err(PinError::Kernel { errno: libc::ESRCH }) => {}
                Err(error) => {
                    before.iter().for_each(|(thread, former)| _ = set(*thread, former));
                    return Err(error);
                }
            }
        }
    }
}

/// Returns the online processors that the control group of this process permits.
#[must_use]
pub fn permitted() -> Bitmap {
    // In a thread of its own: a mask that was set once, even an unchanged one, restricts the thread after a change of
    // the cpuset.
    let ask = || {
        let everywhere = Bitmap::from_words(&[u64::MAX; WORDS]);
        set(ME, &everywhere).and_then(|()| affinity_of(ME)).ok()
    };
    service::ask(ask).ok().flatten().or_else(|| current().ok()).unwrap_or_default()
}

/// Returns the NUMA nodes that `proc/self/status` below `root` permits to this process, or `None` if it does not list
/// them.
#[must_use]
pub fn permitted_nodes(root: &Path) -> Option<Bitmap> {
    let text = std::fs::read_to_string(root.join("proc/self/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?.parse().ok()
}

fn keep(thread: i32, cpus: &Bitmap) -> Result<(), PinError> {
    if cpus.is_empty() {
        return Err(PinError::Empty);
    }
    let before = affinity_of(thread)?;
    // EINVAL: none of the processors is permitted.
    let got = match set(thread, cpus) {
        Ok(()) => affinity_of(thread)?,
        Err(PinError::Kernel { errno: libc::EINVAL }) => Bitmap::new(),
        Err(error) => return Err(error),
    };
    if got == *cpus {
        return Ok(());
    }
    let _ = set(thread, &before);
    let online = match unread::text(Path::new("/"), "/sys/devices/system/cpu/online") {
        Ok(online) => online.and_then(|text| text.parse::<Bitmap>().ok()).unwrap_or_else(permitted),
        Err(unread) => {
            let permitted = permitted();
            return Err(PinError::Refused { cpus: cpus.without(&permitted), permitted, unread });
        }
    };
    let missing = cpus.without(&online);
    Err(if missing.is_empty() {
        let permitted = permitted();
        PinError::NotPermitted { cpus: cpus.without(&permitted), permitted }
    } else {
        PinError::NoSuchCpu { cpus: missing, online }
    })
}

fn affinity_of(thread: i32) -> Result<Bitmap, PinError> {
    mask_of(thread.cast_unsigned()).map(|words| Bitmap::from_words(&words))
}

fn set(thread: i32, cpus: &Bitmap) -> Result<(), PinError> {
    let mut words = [0_u64; WORDS];
    for (word, wanted) in words.iter_mut().zip(cpus.words()) {
        *word = *wanted;
    }
    affinity::set(thread, &words).map_err(|errno| PinError::Kernel { errno })
}

fn threads() -> Result<Vec<i32>, PinError> {
    const TASKS: &str = "/proc/self/task";
    let tasks = match std::fs::read_dir(TASKS) {
        Ok(tasks) => tasks,
        // A kernel has this directory, or no `/proc` at all.
        Err(error) => {
            let unread = Unread::of(Path::new("/"), TASKS, &error);
            return Err(unread.map_or(PinError::Kernel { errno: libc::ENOENT }, PinError::Unread));
        }
    };
    Ok(tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(cpu: u32) -> Bitmap {
        [cpu].into_iter().collect()
    }

    /// Runs a test in a thread of its own, so that the thread's affinity ends with the test.
    fn apart(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn thread_stays_on_its_processor() {
        apart(|| {
            for cpu in permitted().iter() {
                thread(&one(cpu)).unwrap();
                // SAFETY: no preconditions.
                let here = unsafe { libc::sched_getcpu() };
                assert_eq!((current().unwrap(), u32::try_from(here).unwrap()), (one(cpu), cpu));
            }
        });
    }

    #[test]
    fn missing_processor_is_named() {
        apart(|| {
            let (before, first) = (current().unwrap(), permitted().first().unwrap());
            let asked: Bitmap = [first, 8000].into_iter().collect();
            let error = thread(&asked).unwrap_err();
            assert!(matches!(&error, PinError::NoSuchCpu { cpus, .. } if *cpus == one(8000)), "{error}");
            assert!(
                error
                    .to_string()
                    .starts_with("processor 8000 does not exist, or is offline; this machine has 0"),
                "{error}"
            );
            assert_eq!(current().unwrap(), before);
            assert_eq!(thread(&Bitmap::new()), Err(PinError::Empty));
        });
    }

    #[test]
    fn narrow_mask_keeps_permissions() {
        apart(|| {
            let all = permitted();
            thread(&one(all.first().unwrap())).unwrap();
            assert_eq!(permitted(), all);
            assert_eq!(current().unwrap(), one(all.first().unwrap()));
        });
    }

    #[test]
    fn saved_status_gives_nodes() {
        let root = std::env::temp_dir().join(format!("largesse-status-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc/self")).unwrap();
        std::fs::write(root.join("proc/self/status"), "Name:\tx\nMems_allowed_list:\t0,2-3\n").unwrap();
        assert_eq!(permitted_nodes(&root).unwrap().to_string(), "0,2-3");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(permitted_nodes(&root), None);
    }
}
