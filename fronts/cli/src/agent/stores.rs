//! Opens the store that an agent holds.

use super::redis;
use largesse_agent::PageStorage;
use largesse_far::{Scheme, accepted, scheme, without_secrets};

/// Opens a store by its name. The error is a message to the user.
pub(super) fn open(store: &str) -> Result<PageStorage, String> {
    match scheme(store) {
        Some(Scheme::Memory) if store == "memory:" => PageStorage::memory(),
        Some(Scheme::Memory) => Err(format!("{store} is not understood; it is memory: alone")),
        Some(Scheme::Redis) => redis::open(store),
        None => Err(format!("{} is not a store; {} are", without_secrets(store), accepted())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_stores_are_refused() {
        assert!(open("tape:x").unwrap_err().contains("memory:"));
        assert!(open("memory:5").unwrap_err().contains("alone"));
    }
}
