//! Shows programs whether the agent is alive, by one shared word. Reading the word costs one load, and the kernel
//! changes it when the agent dies in any way.
//!
//! The word belongs to a robust mutex that the agent's main thread holds for its whole life: the kernel lists such
//! mutexes and marks them when their owner ends. Programs map the page read-only.

use core::sync::atomic::{AtomicU32, Ordering};
use largesse_pages::MapError;
use largesse_pages::shared::{MemoryFile, SharedMapping};

const OWNER: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;

/// The mutex in the agent's memory that is locked while the agent lives.
#[derive(Debug)]
pub(crate) struct Alive {
    page: MemoryFile,
    mapping: SharedMapping,
}

impl Alive {
    /// Locks the mutex. The agent counts as alive while the calling thread lives.
    pub(crate) fn hold() -> Result<Alive, MapError> {
        let page = MemoryFile::new(c"largesse-alive", size_of::<libc::pthread_mutex_t>())?;
        let mapping = page.map(true)?;
        page.seal_for_readers()?;
        let mutex = mapping.start().as_ptr().cast::<libc::pthread_mutex_t>();
        // SAFETY: the page is long enough, not yet shared, and mapped as long as `mapping`; the attributes are local.
        unsafe {
            let mut how = core::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut how);
            libc::pthread_mutexattr_setpshared(&raw mut how, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&raw mut how, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(mutex, &raw const how);
            libc::pthread_mutex_lock(mutex);
        }
        Ok(Alive { page, mapping })
    }

    /// Returns the memory file with the mutex, which programs map.
    pub(crate) const fn page(&self) -> &MemoryFile {
        &self.page
    }
}

impl Drop for Alive {
    /// Unlocks the mutex, so that the kernel's list of robust mutexes does not lead into unmapped memory.
    fn drop(&mut self) {
        // SAFETY: `hold` locked it on this thread, the agent's main thread, which keeps it until the process ends.
        unsafe { libc::pthread_mutex_unlock(self.mapping.start().as_ptr().cast()) };
    }
}

/// Returns whether the agent that sent the memory `page` is alive.
pub(crate) fn is_alive(page: &SharedMapping) -> bool {
    // SAFETY: the mapping has at least one page. The C library's mutex begins with the word that the kernel changes,
    // and both access it atomically.
    let word = unsafe { &*page.start().as_ptr().cast::<AtomicU32>() };
    // Relaxed: no other memory is read because of this value.
    let word = word.load(Ordering::Relaxed);
    word & OWNER != 0 && word & OWNER_DIED == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_thread_is_seen_as_dead() {
        let (into, from) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel();
        let holder = std::thread::spawn(move || {
            let alive = Alive::hold().unwrap();
            into.send(alive.page().map(false).unwrap()).unwrap();
            ended.recv().unwrap();
            core::mem::forget(alive); // SIGKILL does not unlock either
        });
        let page = from.recv().unwrap();
        assert!(is_alive(&page));
        end.send(()).unwrap();
        holder.join().unwrap();
        assert!(!is_alive(&page));
    }
}
