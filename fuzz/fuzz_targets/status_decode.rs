//! Decodes any bytes as the memory of another process: `largesse status` returns an error and neither panics nor
//! allocates without bound.
#![no_main]
#![expect(dead_code, reason = "the file belongs to a front, of which this is a part")]

#[path = "../../fronts/cli/src/status/decode.rs"]
mod decode;

use libfuzzer_sys::fuzz_target;
use std::io;

const BASE: u64 = 0x1000;

fuzz_target!(|memory: &[u8]| {
    let read = |address: u64, into: &mut [u8]| {
        let nothing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let start = usize::try_from(address.checked_sub(BASE).ok_or_else(nothing)?).map_err(|_| nothing())?;
        let end = start.checked_add(into.len()).ok_or_else(nothing)?;
        into.copy_from_slice(memory.get(start..end).ok_or_else(nothing)?);
        Ok(())
    };
    if let Ok(heap) = decode::heap(BASE, read, || {}) {
        drop(heap);
    }
});
