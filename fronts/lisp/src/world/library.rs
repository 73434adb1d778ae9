//! Holds which definitions belong to the library, how much of them threads evaluated, and their machine code.

use crate::value::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Forms evaluated in a definition after which it is compiled, unless `sys:*compile-after*` says otherwise.
pub(crate) const MUCH: i64 = 16_000;

/// Number of entries of a thread's table of called definitions, each a [`CalledDefinition`].
const CALLED: usize = 4096;

/// Number of adjacent entries, of which any may be that of a given definition.
const TOGETHER: usize = 4;

/// Number of evaluated forms that no definition reaches.
pub(crate) const NEVER: u32 = u32::MAX;

/// A thread's count of the forms that it evaluated in an interpreted definition, and the machine code of that
/// definition.
#[derive(Clone, Copy, Default)]
pub(crate) struct CalledDefinition {
    /// The entry is valid while its epoch is the world's.
    pub(crate) epoch: u64,
    pub(crate) definition: u64,
    /// Number of forms evaluated in the definition and in the closures that it calls, without those in other
    /// interpreted functions and methods.
    pub(crate) evaluated: u32,
    /// Number of evaluated forms at which it is next compared with the limit.
    pub(crate) due: u32,
    /// The machine code, or nil if there is none yet; for a function that only reads a slot, the index of the slot.
    pub(crate) function: u64,
}

/// Creates a thread's table of called definitions.
pub(crate) fn called_definitions() -> Box<[CalledDefinition]> {
    vec![CalledDefinition::default(); CALLED].into()
}

/// Holds the definitions of the library, and the machine code of those in which much was evaluated.
#[derive(Default)]
pub(crate) struct WarmLibrary {
    /// Epoch that every change of the state increments: threads' entries of an older epoch are stale.
    pub(crate) epoch: AtomicU64,
    pub(crate) state: Mutex<WarmState>,
}

#[derive(Default)]
pub(crate) struct WarmState {
    /// Definitions that may be compiled; they are pinned.
    pub(crate) known: HashSet<Value>,
    /// Definitions that the library's own methods have from the start.
    pub(crate) own_methods: HashSet<Value>,
    /// Definitions that existed before further files of the library are loaded.
    pub(crate) before: HashSet<Value>,
    /// The machine code of each compiled definition; it is pinned.
    pub(crate) compiled: HashMap<Value, Value>,
    /// Number of compilations, and their time.
    pub(crate) count: i64,
    pub(crate) time: Duration,
}

impl WarmLibrary {
    /// Invalidates every thread's table. Release: pairs with the Acquire in `warmed`.
    pub(crate) fn changed(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }
}

/// Returns the entry of a definition that the thread calls in this epoch. A new entry takes the place of the one with
/// the fewest forms among [`TOGETHER`], so that two definitions that call each other are both counted.
#[inline]
pub(crate) fn called(
    entries: &mut [CalledDefinition],
    definition: Value,
    epoch: u64,
) -> &mut CalledDefinition {
    let first = ((definition.0 >> 4) ^ (definition.0 >> 16)) as usize % CALLED / TOGETHER * TOGETHER;
    let entries = &mut entries[first..first + TOGETHER];
    let is_it = |entry: &CalledDefinition| entry.definition == definition.0 && entry.epoch == epoch;
    let forms = |entry: &CalledDefinition| if entry.epoch == epoch { entry.evaluated } else { 0 };
    let found = entries.iter().position(is_it);
    let fewest = || (0..TOGETHER).min_by_key(|&at| forms(&entries[at])).unwrap_or(0);
    let at = found.unwrap_or_else(fewest);
    if found.is_none() {
        entries[at] = CalledDefinition { epoch, definition: definition.0, ..CalledDefinition::default() };
    }
    &mut entries[at]
}
