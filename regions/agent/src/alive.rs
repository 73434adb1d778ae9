//! Whether the agent lives: one word that costs a load to read, and that the kernel itself changes when
//! the agent has died, however it died.
//!
//! It is a robust mutex that the agent's first thread holds for good: of those the kernel keeps a list,
//! and marks them when their holder is gone. Programs map the page for reading only.

use core::sync::atomic::{AtomicU32, Ordering};
use largesse_pages::MapError;
use largesse_pages::shared::{MemoryFile, SharedMapping};

const OWNER: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;

/// The agent's end. It lives as long as the process.
#[derive(Debug)]
pub(crate) struct Alive {
    page: MemoryFile,
    mapping: SharedMapping,
}

impl Alive {
    /// From now on the process counts as alive for as long as the calling thread does.
    pub(crate) fn hold() -> Result<Alive, MapError> {
        let page = MemoryFile::new(c"largesse-alive", size_of::<libc::pthread_mutex_t>())?;
        let mapping = page.map(true)?;
        page.seal_for_readers()?;
        let mutex = mapping.start().as_ptr().cast::<libc::pthread_mutex_t>();
        // SAFETY: the page is long enough, ours alone, and stays; the attributes are local.
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

    /// What programs map.
    pub(crate) const fn page(&self) -> &MemoryFile {
        &self.page
    }
}

impl Drop for Alive {
    /// The kernel's list must not lead into memory that is gone.
    fn drop(&mut self) {
        // SAFETY: locked by `hold`, by this thread: the agent's first one has it from its start to its end.
        unsafe { libc::pthread_mutex_unlock(self.mapping.start().as_ptr().cast()) };
    }
}

/// The program's end: whether the agent behind a page that it sent lives.
pub(crate) fn is_alive(page: &SharedMapping) -> bool {
    // SAFETY: the mapping has a page at least. The C library's mutex begins with the word that the
    // kernel changes, which is written atomically by both.
    let word = unsafe { &*page.start().as_ptr().cast::<AtomicU32>() };
    // Relaxed: nothing else is read because of it.
    let word = word.load(Ordering::Relaxed);
    word & OWNER != 0 && word & OWNER_DIED == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_without_a_word_is_seen_to_be_gone() {
        let (into, from) = std::sync::mpsc::channel();
        let holder = std::thread::spawn(move || {
            let alive = Alive::hold().unwrap();
            into.send(alive.page().map(false).unwrap()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            core::mem::forget(alive); // as SIGKILL does
        });
        let page = from.recv().unwrap();
        assert!(is_alive(&page));
        holder.join().unwrap();
        assert!(!is_alive(&page));
    }
}
