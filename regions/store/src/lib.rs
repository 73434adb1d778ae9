//! Stores of far pages.
#![cfg(not(miri))]

mod broker;
mod copy;
mod file;
pub mod memory;
mod overlay;
mod page_store;
mod ranges;
mod room;

pub use broker::{Broker, Idle, borrow_stderr};
pub use copy::copy_past_caches;
pub use file::{FileRefused, FileStore};
pub use overlay::{Layers, Sheet};
pub use page_store::{Fork, Found, PageStore, SpaceStore, Spaces, StoreError};
pub use ranges::{Ranges, bytes, offsets};
pub use room::available;
