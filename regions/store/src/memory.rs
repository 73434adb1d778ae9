//! A store in the memory of this process. Other processes can map that memory: they copy pages themselves, and only ask
//! for room to be reserved and freed. All of the memory belongs to the process that owns the store.

use crate::room;
use crate::{PageStore, ProvidedStore, Ranges, StoreError};
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_pages::{PageKind, Reserved, SPAN};
use std::sync::{Mutex, PoisonError};

/// Number of bytes that are allocated in one step. Before each step, the available memory is checked.
const STEP: usize = 64 << 20;
/// Number of bytes that a process must be able to lock so that it counts as able to lock memory.
const MIN_LOCK: usize = 64 << 20;

/// Returns an error if the kernel could swap out the store's memory, which could bring the machine to a standstill.
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
    let probe = Reserved::new(MIN_LOCK, SPAN);
    probe.is_ok_and(|it| it.commit(0, MIN_LOCK, PageKind::Small).is_ok() && it.lock(0, MIN_LOCK).is_ok())
}

/// A store in a memory file, which is locked in RAM if possible.
#[derive(Debug)]
pub struct MemoryStore {
    file: MemoryFile,
    mapping: SharedMapping,
    /// The bytes to which memory is allocated.
    taken: Mutex<Ranges>,
}

impl MemoryStore {
    /// Makes an empty store with room for `bytes` bytes.
    pub fn new(bytes: usize) -> Result<MemoryStore, StoreError> {
        let system =
            |error: largesse_pages::MapError| StoreError::System { call: "memfd_create", errno: error.errno };
        let file = MemoryFile::new(c"largesse-window", bytes).map_err(system)?;
        let mapping = file.map(true).map_err(system)?;
        Ok(MemoryStore { file, mapping, taken: Mutex::default() })
    }

    /// Returns the memory file, which other processes map.
    pub const fn file(&self) -> &MemoryFile {
        &self.file
    }

    fn address(&self, at: u64, len: usize) -> Option<*mut u8> {
        let at = usize::try_from(at).ok()?;
        let inside = at <= self.mapping.len() && len <= self.mapping.len() - at;
        // SAFETY: inside the mapping, as was just checked.
        inside.then(|| unsafe { self.mapping.start().as_ptr().add(at) })
    }

    /// Allocates memory for the bytes of `at..at + len` that have none.
    fn take(&self, at: usize, len: usize) -> Result<(), StoreError> {
        let full = |_| StoreError::Full { wanted: len as u64 };
        self.file.allocate_large(&self.mapping, at, len).map_err(full)?;
        match self.mapping.lock(at, len) {
            Err(errno) if room::has_swap() => Err(full(errno)),
            // Without swap, memory that is not locked stays resident all the same.
            _ => Ok(()),
        }
    }

    fn give_back(&self, at: usize, len: usize) {
        self.mapping.unlock(at, len);
        let _ = self.file.punch(at, len);
    }
}

impl ProvidedStore for MemoryStore {}

impl PageStore for MemoryStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = StoreError::Full { wanted: len };
        let length = usize::try_from(len).map_err(|_| full.clone())?;
        self.address(at, length).ok_or_else(|| full.clone())?;
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
        let from = self.address(at, into.len()).ok_or(outside())?;
        // SAFETY: inside the mapping; callers never transfer the same bytes twice at once.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let to = self.address(at, from.len()).ok_or(outside())?;
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let Some(length) = usize::try_from(len).ok().filter(|&it| self.address(at, it).is_some()) else {
            return;
        };
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&(at..at + len));
        self.give_back(in_memory(at), length);
    }
}

impl Drop for MemoryStore {
    /// Frees the memory at once, even if other processes still map the file.
    fn drop(&mut self) {
        let _ = self.file.punch(0, self.mapping.len());
    }
}

fn outside() -> StoreError {
    StoreError::Lost("an offset outside of the store".to_owned())
}

/// Converts an offset in the store from 64 bits to the size of an address.
fn in_memory(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_locked_only_with_swap() {
        assert!(allowed(false, false).is_ok() && allowed(true, true).is_ok());
        assert!(allowed(true, false).unwrap_err().contains("ulimit -l unlimited"));
    }

    #[test]
    fn discarded_bytes_take_no_memory() {
        let store = MemoryStore::new(64 << 20).unwrap();
        store.reserve(3 << 20, 8 << 20).unwrap();
        store.write(4 << 20, &[5; 4096]).unwrap();
        let mut page = [0; 4096];
        store.read(4 << 20, &mut page).unwrap();
        assert_eq!(page, [5; 4096]);
        assert_eq!(blocks(&store) << 9, 8 << 20);
        store.discard(3 << 20, 8 << 20);
        assert_eq!(blocks(&store), 0);
        store.reserve(4 << 20, 4096).unwrap();
        store.read(4 << 20, &mut page).unwrap();
        assert_eq!(page, [0; 4096]);
    }

    #[test]
    fn too_large_reservation_takes_no_memory() {
        // ThreadSanitizer leaves a process a few TiB of addresses.
        let memory = 2 * largesse_pages::physical_memory().next_power_of_two();
        let (store, more) = (MemoryStore::new(memory).unwrap(), memory as u64);
        store.reserve(0, 1 << 20).unwrap();
        assert_eq!(store.reserve(0, more), Err(StoreError::Full { wanted: more }));
        assert_eq!(store.reserve(more, 4096), Err(StoreError::Full { wanted: 4096 }));
        assert_eq!(blocks(&store) << 9, 1 << 20);
    }

    /// Returns the number of blocks of 512 bytes that the file occupies.
    fn blocks(store: &MemoryStore) -> i64 {
        // SAFETY: a plain structure that the call fills, of our own descriptor.
        unsafe {
            let mut about: libc::stat = core::mem::zeroed();
            assert_eq!(libc::fstat(store.file.descriptor(), &raw mut about), 0);
            about.st_blocks
        }
    }
}
