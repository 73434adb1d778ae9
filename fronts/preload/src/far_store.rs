//! Describes the store of far memory, for readers in other processes and for the report.

use largesse_paging::StoreInfo;
use largesse_report::FarStore;
use std::sync::OnceLock;

/// Description of the store, which `largesse status` reads from the memory of this process.
static STORE: OnceLock<FarStore> = OnceLock::new();

/// Sets the description of the store, once in a process.
pub(crate) fn set(store: &StoreInfo) {
    let _ = STORE.set(FarStore::new(store.agent, &store.name));
}

/// Returns the description of the store, if there is far memory.
pub(crate) fn about() -> Option<&'static FarStore> {
    STORE.get()
}
