//! Opens the store that an agent holds.

use super::redis;
use largesse_agent::PageStorage;
use largesse_far::{ACCEPTED, without_secrets};
use largesse_settings::StoreName;

/// Opens a store by its name. The error is a message to the user.
pub(super) fn open(store: &str) -> Result<PageStorage, String> {
    match StoreName::parse(store) {
        Some(StoreName::Memory("")) => PageStorage::memory(),
        Some(StoreName::Memory(_)) => Err(format!("{store} is not understood; it is memory: alone")),
        Some(StoreName::Redis) => redis::open(store),
        _ => Err(format!("{} is not a store; {ACCEPTED} are", without_secrets(store))),
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
