//! Decodes the report of another process, read through a function that copies its memory. Any content gives a heap or
//! an error.

use largesse_pager::{COUNTS, Count, MOST_SEGMENTS, SegmentWords};
use largesse_report::{BlockKind, BlockRecord, FarStore, HeapReport, MAGIC, Signpost, VERSION};
use std::io;
use std::mem::MaybeUninit;

/// Number of slots for blocks above which a report counts as damaged (a million blocks of 64 KiB are 64 GiB).
const MOST_SLOTS: u64 = 1 << 22;
/// Maximum number of live blocks that are decoded, in a few megabytes of this command's memory. Programs have fewer.
const MOST_BLOCKS: usize = 1 << 17;
/// Maximum number of bytes of records that are read while the heap keeps changing.
const MOST_READ: u64 = 256 << 20;
/// Number of slots for blocks that are read at a time, so that a wrong count fails early.
const CHUNK: usize = 4096;
/// Largest number of attempts to read a heap without a change during the reading; the last attempt counts in any case.
const TRIES: u32 = 50;
/// End of user space with five levels of page tables.
const ADDRESS_END: u64 = 1 << 56;

/// The decoded report of a heap.
#[derive(Debug)]
pub(super) struct Heap {
    pub(super) report: Box<HeapReport>,
    /// The first `MOST_BLOCKS` live blocks of the table, sorted by address.
    pub(super) blocks: Vec<BlockRecord>,
    /// Number of live blocks that are not in `blocks`.
    pub(super) left_out: u64,
    /// The report of far memory, if there is any.
    pub(super) far: Option<FarReport>,
    /// Whether the heap did not change while it was read.
    pub(super) steady: bool,
}

/// The decoded report of far memory.
#[derive(Debug)]
pub(super) struct FarReport {
    pub(super) words: [u64; COUNTS],
    pub(super) segments: Vec<Segment>,
    pub(super) store: FarStore,
}

/// A copy of `largesse_pager::SegmentWords`, which describes one segment of far memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) label: u64,
    pub(super) words: [u64; COUNTS],
}

const _: () = assert!(size_of::<Segment>() == size_of::<SegmentWords>());

/// The reason why a report could not be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undecodable {
    /// The memory could not be read.
    #[error("its report cannot be read: {0}")]
    Unread(io::Error),
    /// The mapping does not hold a signpost.
    #[error("its mapping named largesse is not Largesse's")]
    NoSignpost,
    /// Another version of the library wrote the report.
    #[error(
        "its library writes reports of version {version}, and this command reads version {}; use the `largesse` that came with that library",
        VERSION
    )]
    OtherVersion { version: u32 },
    /// The report holds a number that no heap writes.
    #[error("its report is damaged: {what} is {value:#x}")]
    Damaged { what: &'static str, value: u64 },
}

/// Marks types without padding of which every bit pattern is a valid value.
///
/// # Safety
/// The type must be `#[repr(C)]` and consist of integers and arrays of integers, without bytes between the fields.
unsafe trait Plain {}
// SAFETY: an array of bytes and three integers, 8 + 4 + 4 + 8 bytes.
unsafe impl Plain for Signpost {}
// SAFETY: seven u64, six 32-bit integers, then u64 only.
unsafe impl Plain for HeapReport {}
// SAFETY: two u64 and two u32.
unsafe impl Plain for BlockRecord {}
// SAFETY: one u64 and an array of bytes.
unsafe impl Plain for FarStore {}
// SAFETY: u64 only.
unsafe impl Plain for Segment {}
// SAFETY: u64 only.
unsafe impl Plain for [u64; COUNTS] {}

/// Reads the heap of another process from its signpost, at address `signpost`. The process may change the heap during
/// the reading. Then it is read again after a call of `pause`, and after [`TRIES`] attempts the last result is returned
/// as it is.
pub(super) fn heap(
    signpost: u64,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    pause: impl Fn(),
) -> Result<Heap, Undecodable> {
    let post: Signpost = plain(&read, signpost)?;
    if post.magic != MAGIC {
        return Err(Undecodable::NoSignpost);
    }
    if !post.readable() {
        return Err(Undecodable::OtherVersion { version: post.version });
    }
    let (mut tries, mut bytes_read) = (0, 0_u64);
    loop {
        tries += 1;
        let report: Box<HeapReport> = Box::new(plain(&read, post.report)?);
        bytes_read = bytes_read.saturating_add(report.slots.saturating_mul(size_of::<BlockRecord>() as u64));
        let last = tries == TRIES || bytes_read > MOST_READ;
        let at_rest = report.generation.is_multiple_of(2);
        if at_rest || last {
            let blocks = live_blocks(&read, &report);
            let generation: [u8; 8] = bytes(&read, post.report)?;
            let steady = at_rest && u64::from_ne_bytes(generation) == report.generation;
            if steady || last {
                let far = far(&read, &report)?;
                let (blocks, left_out) = blocks?;
                return Ok(Heap { report, blocks, left_out, far, steady });
            }
        }
        pause();
    }
}

fn far(
    read: &impl Fn(u64, &mut [u8]) -> io::Result<()>,
    report: &HeapReport,
) -> Result<Option<FarReport>, Undecodable> {
    if report.far == 0 {
        return Ok(None);
    }
    let words: [u64; COUNTS] = plain(read, report.far)?;
    let store = plain(read, report.far_store)?;
    let count = words[Count::Segments as usize];
    if count > MOST_SEGMENTS as u64 {
        return Err(Undecodable::Damaged { what: "the number of segments of far memory", value: count });
    }
    let at = report.far_segments;
    if at.checked_add(count * size_of::<Segment>() as u64).is_none() {
        return Err(Undecodable::Damaged { what: "the address of the segments of far memory", value: at });
    }
    let each = (0..count).map(|place| plain::<Segment>(read, at + place * size_of::<Segment>() as u64));
    // The entry of an unmapped segment has length 0.
    let segments = each.filter(|it| it.as_ref().map_or(true, |segment| segment.len > 0));
    Ok(Some(FarReport { words, segments: segments.collect::<Result<_, _>>()?, store }))
}

/// Returns whether a range lies in user space, so that later arithmetic with it cannot overflow.
pub(super) fn in_user_space(address: u64, len: u64) -> bool {
    address.checked_add(len).is_some_and(|end| end <= ADDRESS_END)
}

fn live_blocks(
    read: &impl Fn(u64, &mut [u8]) -> io::Result<()>,
    report: &HeapReport,
) -> Result<(Vec<BlockRecord>, u64), Undecodable> {
    if report.slots > MOST_SLOTS {
        return Err(Undecodable::Damaged { what: "the number of slots", value: report.slots });
    }
    let slots = usize::try_from(report.slots).unwrap_or(0);
    let (mut live, mut left_out): (Vec<BlockRecord>, u64) = (Vec::new(), 0);
    let mut chunk = vec![BlockRecord::default(); slots.min(CHUNK)];
    for first in (0..slots).step_by(CHUNK) {
        let part = &mut chunk[..CHUNK.min(slots - first)];
        let offset = (first * size_of::<BlockRecord>()) as u64;
        let address = report.blocks.checked_add(offset);
        let address = address
            .ok_or(Undecodable::Damaged { what: "the address of the blocks", value: report.blocks })?;
        read(address, as_bytes(part)).map_err(Undecodable::Unread)?;
        for record in part.iter().filter(|record| record.kind != BlockKind::Free as u32) {
            if live.len() < MOST_BLOCKS { live.push(*record) } else { left_out += 1 }
        }
    }
    for record in &live {
        if !in_user_space(record.address, record.size) {
            return Err(Undecodable::Damaged { what: "the address of a block", value: record.address });
        }
    }
    live.sort_unstable_by_key(|record| record.address);
    Ok((live, left_out))
}

fn plain<T: Plain>(read: &impl Fn(u64, &mut [u8]) -> io::Result<()>, address: u64) -> Result<T, Undecodable> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `value` is one zeroed T, borrowed for as long as the slice lives; a Plain type has no
    // padding, so that every byte is initialised, and takes any byte that is written to it.
    let bytes = unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
    read(address, bytes).map_err(Undecodable::Unread)?;
    // SAFETY: every byte was written, and every pattern of bits is a Plain value.
    Ok(unsafe { value.assume_init() })
}

fn bytes<const LEN: usize>(
    read: &impl Fn(u64, &mut [u8]) -> io::Result<()>,
    address: u64,
) -> Result<[u8; LEN], Undecodable> {
    let mut into = [0; LEN];
    read(address, &mut into).map_err(Undecodable::Unread)?;
    Ok(into)
}

fn as_bytes<T: Plain>(values: &mut [T]) -> &mut [u8] {
    let len = size_of_val(values);
    // SAFETY: the same memory, borrowed for as long; a Plain type has no padding, so that every
    // byte is initialised, and takes any byte that is written to it.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), len) }
}

#[cfg(test)]
mod tests;
