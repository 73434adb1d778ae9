//! The agent's own memory as a store. A space is a *window*: memory that the program maps as well, and copies
//! to and from by itself. Only who takes and gives back memory is told, so that all of it is the agent's.

use crate::room;
use crate::{PageStore, Ranges, SpaceStore, StoreError};
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_pages::{PageKind, Reserved, SPAN};
use std::sync::{Mutex, PoisonError};

/// Taken at once; what is left is looked at in between.
const STEP: usize = 64 << 20;
/// Who may not lock as much cannot be meant to lock at all.
const LEAST_LOCK: usize = 64 << 20;

/// Refused where the memory could be paged out itself: the machine could stop over it.
pub fn open() -> Result<(), String> {
    allowed(room::has_swap(), may_lock())
}

fn allowed(swap: bool, lock: bool) -> Result<(), String> {
    if swap && !lock {
        return Err("memory: must be locked, since this machine swaps, and `ulimit -l` is too low: \
            type `ulimit -l unlimited` (or ask for \"memlock\" in /etc/security/limits.conf), or use --far file:PATH"
            .to_owned());
    }
    Ok(())
}

fn may_lock() -> bool {
    let probe = Reserved::new(LEAST_LOCK, SPAN);
    probe.is_ok_and(|it| it.commit(0, LEAST_LOCK, PageKind::Small).is_ok() && it.lock(0, LEAST_LOCK).is_ok())
}

/// One space.
#[derive(Debug)]
pub struct Window {
    file: MemoryFile,
    mapping: SharedMapping,
    /// Bytes that have memory.
    taken: Mutex<Ranges>,
}

impl Window {
    /// An empty one.
    pub fn new(bytes: usize) -> Result<Window, StoreError> {
        let system =
            |error: largesse_pages::MapError| StoreError::System { call: "memfd_create", errno: error.errno };
        let file = MemoryFile::new(c"largesse-window", bytes).map_err(system)?;
        let mapping = file.map(true).map_err(system)?;
        Ok(Window { file, mapping, taken: Mutex::default() })
    }

    /// What the program maps.
    pub const fn file(&self) -> &MemoryFile {
        &self.file
    }

    fn place(&self, at: u64, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(at).ok()?;
        let inside = at <= self.mapping.len() && len <= self.mapping.len() - at;
        // SAFETY: inside the mapping, as was just checked.
        inside.then(|| unsafe { self.mapping.start().as_ptr().add(at) })
    }

    /// Memory for bytes that have none.
    fn take(&self, at: usize, len: usize) -> Result<(), StoreError> {
        let full = |_| StoreError::Full { wanted: len as u64 };
        self.file.allocate_large(&self.mapping, at, len).map_err(full)?;
        match self.mapping.lock(at, len) {
            Err(errno) if room::has_swap() => Err(full(errno)),
            // What is not locked stays in memory all the same where there is no swap.
            _ => Ok(()),
        }
    }

    fn give_back(&self, at: usize, len: usize) {
        self.mapping.unlock(at, len);
        let _ = self.file.punch(at, len);
    }
}

impl SpaceStore for Window {}

impl PageStore for Window {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = StoreError::Full { wanted: len };
        let length = usize::try_from(len).map_err(|_| full.clone())?;
        self.place(at, length).ok_or_else(|| full.clone())?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = taken.missing(&(at..at + len));
        if missing.bytes() > room::available() {
            return Err(full);
        }
        let steps = missing.iter().flat_map(|part| {
            let end = part.end;
            part.step_by(STEP).map(move |from| from..end.min(from + STEP as u64))
        });
        for step in steps {
            let enough = room::available() >= step.end - step.start;
            let (from, part) = (in_memory(step.start), in_memory(step.end - step.start));
            taken.add(step);
            if !enough || self.take(from, part).is_err() {
                for part in missing.iter() {
                    taken.remove(&part);
                    self.give_back(in_memory(part.start), in_memory(part.end - part.start));
                }
                return Err(full);
            }
        }
        Ok(())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let from = self.place(at, into.len()).ok_or(outside())?;
        // SAFETY: inside the mapping; the pager never moves the same bytes twice at once.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let to = self.place(at, from.len()).ok_or(outside())?;
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let Some(length) = usize::try_from(len).ok().filter(|&it| self.place(at, it).is_some()) else {
            return;
        };
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&(at..at + len));
        self.give_back(in_memory(at), length);
    }
}

impl Drop for Window {
    /// Whoever maps it still, mapped or not: the memory is the machine's again.
    fn drop(&mut self) {
        let _ = self.file.punch(0, self.mapping.len());
    }
}

fn outside() -> StoreError {
    StoreError::Lost("an offset outside of the store".to_owned())
}

/// An offset inside a mapping.
fn in_memory(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_swap_nothing_need_be_locked() {
        assert!(allowed(false, false).is_ok() && allowed(true, true).is_ok());
        assert!(allowed(true, false).unwrap_err().contains("ulimit -l unlimited"));
    }

    #[test]
    fn what_is_written_is_read_and_what_is_discarded_takes_no_memory() {
        let window = Window::new(64 << 20).unwrap();
        window.reserve(3 << 20, 8 << 20).unwrap();
        window.write(4 << 20, &[5; 4096]).unwrap();
        let mut page = [0; 4096];
        window.read(4 << 20, &mut page).unwrap();
        assert_eq!(page, [5; 4096]);
        assert_eq!(blocks(&window) << 9, 8 << 20);
        window.discard(3 << 20, 8 << 20);
        assert_eq!(blocks(&window), 0);
        window.reserve(4 << 20, 4096).unwrap();
        window.read(4 << 20, &mut page).unwrap();
        assert_eq!(page, [0; 4096]);
    }

    #[test]
    fn more_than_there_is_is_refused_and_takes_nothing() {
        let window = Window::new(1 << 44).unwrap();
        window.reserve(0, 1 << 20).unwrap();
        assert_eq!(window.reserve(0, 1 << 43), Err(StoreError::Full { wanted: 1 << 43 }));
        assert_eq!(window.reserve(1 << 44, 4096), Err(StoreError::Full { wanted: 4096 }));
        assert_eq!(blocks(&window) << 9, 1 << 20);
    }

    /// Units of 512 bytes that the file has.
    fn blocks(window: &Window) -> i64 {
        // SAFETY: a plain structure that the call fills, of our own descriptor.
        unsafe {
            let mut about: libc::stat = core::mem::zeroed();
            assert_eq!(libc::fstat(window.file.descriptor(), &raw mut about), 0);
            about.st_blocks
        }
    }
}
