//! Describes the store of far memory, for readers in other processes and for the report.

use largesse_paging::StoreInfo;
use largesse_report::FarStore;
use std::sync::OnceLock;

/// Names the store for `largesse status`, which reads it from outside.
static STORE: OnceLock<FarStore> = OnceLock::new();

/// Keeps the description of the store.
pub(crate) fn set(store: &StoreInfo) {
    let _ = STORE.set(FarStore::new(store.agent, &store.name));
}

/// Returns the description of the store, if there is far memory.
pub(crate) fn about() -> Option<&'static FarStore> {
    STORE.get()
}
