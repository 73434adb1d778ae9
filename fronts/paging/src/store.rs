//! Opens the store of far memory. A new kind of store that lives in the process must be added here.

use crate::config::Store;
use crate::error::Error;
use largesse_agent::AgentStore;
use largesse_store::{Broker, FileStore, PageStore};
use std::sync::Arc;

/// A store of any kind, in a box.
pub type AnyStore = Box<dyn PageStore>;

/// Facts about a store that users are shown.
#[derive(Clone, Debug)]
pub struct StoreInfo {
    /// Number of the agent's process that holds the pages; 0 if this process holds them itself.
    pub agent: u32,
    /// Name of the store, without secrets.
    pub name: String,
}

/// Opens the store `choice` for pages at offsets below `bytes`.
pub(crate) fn open(
    choice: &Store,
    bytes: usize,
    broker: &Arc<Broker>,
) -> Result<(AnyStore, StoreInfo), Error> {
    match choice {
        Store::File(path) => {
            let store = FileStore::create(path, broker).map_err(Error::File)?;
            Ok((Box::new(store), StoreInfo { agent: 0, name: format!("file:{}", path.display()) }))
        }
        Store::Agent(name) => {
            let store = AgentStore::connect(name, bytes).map_err(Error::Agent)?;
            let about = store.about();
            let info = StoreInfo { agent: about.agent, name: about.store.clone() };
            Ok((Box::new(store), info))
        }
    }
}
