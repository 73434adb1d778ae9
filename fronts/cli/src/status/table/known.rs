//! Formats bytes that may be unknown.

use largesse_terminal::size;

/// Formats bytes as [`size`] does, or `?` if they are unknown.
pub(super) fn known(bytes: Option<u64>) -> String {
    bytes.map_or("?".into(), size)
}
