//! Defines the records of the report. Addresses are those of the writing process; sizes are in bytes.

use crate::{CAUSES, MAGIC, VERSION};

/// Largest number of mappings of other libraries that are recorded as advised for huge pages.
pub const MAX_ADVISED: usize = 512;

/// The contents of the memory file by which readers find the report of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Signpost {
    /// The value is [`MAGIC`].
    pub magic: [u8; 8],
    /// The value is [`VERSION`].
    pub version: u32,
    /// Size of the writer's [`HeapReport`] in bytes.
    pub report_size: u32,
    /// Address of the [`HeapReport`].
    pub report: u64,
}

impl Signpost {
    /// Returns a signpost to the report at address `report`.
    #[must_use]
    pub const fn to(report: u64) -> Signpost {
        Signpost { magic: MAGIC, version: VERSION, report_size: size_of::<HeapReport>() as u32, report }
    }

    /// Returns whether this version of the crate can read the report.
    #[must_use]
    pub const fn readable(&self) -> bool {
        u64::from_ne_bytes(self.magic) == u64::from_ne_bytes(MAGIC)
            && self.version == VERSION
            && self.report_size as usize == size_of::<HeapReport>()
    }
}

/// The kind of page that the user chose.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PageChoice {
    /// The documented default is used: today transparent huge pages.
    #[default]
    Auto = 0,
    /// Transparent huge pages (2 MiB on x86-64) are used.
    Thp = 1,
    /// 2 MiB pages of the hugetlb pool are used.
    Hugetlb = 2,
    /// 1 GiB pages of the hugetlb pool are used.
    Hugetlb1G = 3,
    /// 64 KiB pages (multi-size THP) are used.
    Medium = 4,
    /// Only base pages are used.
    Small = 5,
}

impl PageChoice {
    /// Every kind of page with its option value, such as `thp`.
    pub const WORDS: [(&'static str, PageChoice); 6] = [
        ("auto", PageChoice::Auto),
        ("thp", PageChoice::Thp),
        ("hugetlb", PageChoice::Hugetlb),
        ("hugetlb-1g", PageChoice::Hugetlb1G),
        ("64k", PageChoice::Medium),
        ("4k", PageChoice::Small),
    ];

    /// Returns the option value of this kind of page.
    #[must_use]
    pub fn word(self) -> &'static str {
        PageChoice::WORDS[self as usize].0
    }
}

/// The kind of page that backs a block.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BlockKind {
    /// The record is unused: there is no block.
    #[default]
    Free = 0,
    /// The block is advised for transparent huge pages.
    Thp = 1,
    /// The block is on pages of the hugetlb pool.
    Hugetlb = 2,
    /// The block is advised against huge pages, or is on 64 KiB ones.
    Small = 3,
    /// The block is an advised mapping of another library.
    Advised = 4,
    /// The block is on more than one kind of page.
    Mixed = 5,
}

/// The memory of the program that a segment of far memory holds.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The segment is the heap's range, which contains every large block.
    Heap = 0,
    /// The segment is a part of the static arrays of the program or of one of its libraries.
    Static = 1,
    /// The segment is memory that the program mapped itself.
    Mapping = 2,
}

impl Region {
    /// Returns the word that is displayed for a segment whose label is this number, and `unknown` for numbers that
    /// label nothing.
    #[must_use]
    pub const fn word(label: u64) -> &'static str {
        const WORDS: [&str; 3] = ["heap", "static", "mapping"];
        if label < WORDS.len() as u64 { WORDS[label as usize] } else { "unknown" }
    }
}

/// The store that holds a program's far pages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FarStore {
    /// Process number of the agent that holds far pages, or 0 if the program holds them itself.
    pub agent: u64,
    /// Name of the store, padded with zeros. Passwords and keys are left out.
    pub name: [u8; 248],
}

impl FarStore {
    /// Creates the description of a store; the name is truncated to 248 bytes.
    #[must_use]
    pub fn new(agent: u32, name: &str) -> FarStore {
        let mut store = FarStore { agent: agent.into(), name: [0; 248] };
        let len = name.floor_char_boundary(store.name.len());
        store.name[..len].copy_from_slice(&name.as_bytes()[..len]);
        store
    }

    /// Returns the name, or `?` if it is not UTF-8.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        core::str::from_utf8(&self.name[..end]).unwrap_or("?")
    }
}

/// A live block, or an unused record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockRecord {
    /// Address that the caller of `malloc` got.
    pub address: u64,
    /// Number of bytes that the caller requested.
    pub size: u64,
    /// Number of the [`BlockKind`]. The type is not the enumeration, because a reader may find any value in another
    /// process's memory.
    pub kind: u32,
    /// 0 if the whole block is of one kind, else the second part as packed by [`Rest`]. In an unused record, the
    /// number of the next unused record plus one, or 0 if there is none.
    pub rest: u32,
}

/// A block begins a second kind of page only at an address that is a multiple of this many bytes.
const SPAN: u64 = 2 << 20;

impl BlockRecord {
    /// Returns the block, or its two parts if it is on two kinds of page. If the numbers are such as no library
    /// writes, it returns the whole block.
    #[must_use]
    pub fn parts(self) -> (BlockRecord, Option<BlockRecord>) {
        let second = Rest::unpack(self.rest).and_then(|rest| {
            let first =
                (u64::from(rest.spans) * SPAN).checked_sub(self.address % SPAN).filter(|size| *size > 0)?;
            let size = self.size.checked_sub(first).filter(|size| *size > 0)?;
            Some(BlockRecord { address: self.address.checked_add(first)?, size, kind: rest.kind, rest: 0 })
        });
        let size = self.size - second.map_or(0, |part| part.size);
        (BlockRecord { size, rest: 0, ..self }, second)
    }

    /// Describes the part of a block that is `size` bytes long and starts at `address`, with the kinds of page that it
    /// is on.
    #[must_use]
    pub fn cut(self, address: u64, size: u64) -> BlockRecord {
        let (kind, rest) = match self.parts().1 {
            Some(second) if second.address <= address => (second.kind, 0),
            Some(second) if second.address < address.saturating_add(size) => {
                let spans = ((second.address - address / SPAN * SPAN) / SPAN) as u32;
                (self.kind, Rest { spans, kind: second.kind }.pack())
            }
            _ => (self.kind, 0),
        };
        BlockRecord { address, size, kind, rest }
    }
}

/// The second part of a block that is on two kinds of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Number of spans of 2 MiB from the one in which the block starts to the second part, 1 to 2^24 - 1.
    pub spans: u32,
    /// Number of the second part's [`BlockKind`], below 256.
    pub kind: u32,
}

impl Rest {
    /// Packs both numbers into one word.
    #[must_use]
    pub const fn pack(self) -> u32 {
        self.spans << 8 | self.kind
    }

    /// Unpacks a word; returns `None` for a block of one kind.
    #[must_use]
    pub const fn unpack(word: u32) -> Option<Rest> {
        if word == 0 { None } else { Some(Rest { spans: word >> 8, kind: word & 0xff }) }
    }
}

/// Counts events and bytes since the process started.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Number of blocks allocated.
    pub allocations: u64,
    /// Number of blocks freed.
    pub frees: u64,
    /// Sum of the sizes in bytes that were requested for live blocks.
    pub live_bytes: u64,
    /// Highest value of `live_bytes`.
    pub peak_bytes: u64,
    /// Number of allocated blocks of which at least half had been touched before.
    pub reused: u64,
    /// Number of allocated bytes whose first touch was still to be paid.
    pub fresh_bytes: u64,
    /// Number of bytes of free memory that are retained for reuse now.
    pub retained_bytes: u64,
    /// Number of bytes returned to the kernel: because they were free for a while, exceeded the bound, or at a call of
    /// `malloc_trim`.
    pub returned_bytes: u64,
    /// Number of bytes whose pages were populated before a program asked for them.
    pub populated_bytes: u64,
    /// Number of bytes that `calloc` did not have to clear.
    pub clear_skipped_bytes: u64,
    /// Number of blocks resized without moving.
    pub resized_in_place: u64,
    /// Number of blocks whose pages were moved by `mremap`.
    pub moved_by_mremap: u64,
    /// Number of mappings of other libraries for which huge pages were advised.
    pub advised_mappings: u64,
    /// Number of bytes of the mappings counted in `advised_mappings`.
    pub advised_bytes: u64,
}

impl Counters {
    /// Names of the counters, in the order of [`Counters::all`].
    pub const NAMES: [&'static str; 14] = [
        "allocations",
        "frees",
        "live_bytes",
        "peak_bytes",
        "reused",
        "fresh_bytes",
        "retained_bytes",
        "returned_bytes",
        "populated_bytes",
        "clear_skipped_bytes",
        "resized_in_place",
        "moved_by_mremap",
        "advised_mappings",
        "advised_bytes",
    ];

    /// Returns the value of every counter, in the order of the fields.
    #[must_use]
    pub const fn all(&self) -> [u64; 14] {
        [
            self.allocations,
            self.frees,
            self.live_bytes,
            self.peak_bytes,
            self.reused,
            self.fresh_bytes,
            self.retained_bytes,
            self.returned_bytes,
            self.populated_bytes,
            self.clear_skipped_bytes,
            self.resized_in_place,
            self.moved_by_mremap,
            self.advised_mappings,
            self.advised_bytes,
        ]
    }
}

/// The description of a heap for other processes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeapReport {
    /// Number of changes of the block records that have begun, plus the number of those that have ended. A reader that
    /// copies the records must copy them again if this number was odd or has changed.
    pub generation: u64,
    /// Address of the first [`BlockRecord`].
    pub blocks: u64,
    /// Number of records from the first one that have ever been used, those of live blocks included.
    pub slots: u64,
    /// Start of the reserved address range.
    pub range_start: u64,
    /// Length of the reserved address range in bytes.
    pub range_len: u64,
    /// Smallest request in bytes that the heap serves.
    pub min_bytes: u64,
    /// Largest request in bytes that the heap serves.
    pub max_bytes: u64,
    /// Number of bytes before the data of a block (R's vector header).
    pub header: u32,
    /// Number of the [`PageChoice`] that the user made.
    pub pages: u32,
    /// 1 while the heap serves new requests, else 0.
    pub enabled: u32,
    /// 1 if every block is locked in memory, else 0.
    pub locked: u32,
    /// How the program's calls reach the library: 0 if it was preloaded, 1 if the relocation slots of an R session
    /// were patched, 2 if the program calls functions that the library gave it.
    pub patched: u32,
    /// NUMA policy of the heap's memory: -1 first touch, -2 interleave, else the number of the node.
    pub node: i32,
    /// Address of the counters of far memory, in the order of `largesse_pager::Count`; 0 without far memory.
    pub far: u64,
    /// Address of the counters of the segments of far memory (`largesse_pager::SegmentWords`), each labelled with a
    /// [`Region`]. 0 without far memory.
    pub far_segments: u64,
    /// Address of the [`FarStore`]; 0 without far memory.
    pub far_store: u64,
    /// The tightest limit on memory in bytes below which the process is kept; 0 without `--limit`.
    pub limit_bytes: u64,
    /// Second of `CLOCK_MONOTONIC` at which memory was first evicted to stay below the limit; 0 before.
    pub spilling_since: u64,
    /// Nanoseconds for which large blocks could not be allocated while they became far memory; 0 before.
    pub change_over_ns: u64,
    /// Number of times that large blocks became near memory again, since there was room.
    pub near_again: u64,
    /// Second of `CLOCK_MONOTONIC` at which they last became near again; 0 if they did not, or are far.
    pub near_since: u64,
    /// Number of bytes in slabs of small blocks; 0 while the C library serves these. Updated every few seconds.
    pub small_bytes: u64,
    /// Counts events and bytes since the process started.
    pub counters: Counters,
    /// Number of occurrences of each [`crate::Cause`].
    pub not_granted: [u64; CAUSES],
    /// Address and length in bytes of each mapping of other libraries for which huge pages were advised. Unused
    /// entries are zero.
    pub advised: [[u64; 2]; MAX_ADVISED],
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn block(rest: Option<(u32, BlockKind)>) -> BlockRecord {
        let rest = rest.map_or(0, |(spans, kind)| Rest { spans, kind: kind as u32 }.pack());
        BlockRecord { address: 5 * MIB, size: 8 * MIB, kind: BlockKind::Hugetlb as u32, rest }
    }

    /// Address and size in MiB of a part of a block, and the number of its kind of page.
    type Part = (u64, u64, u32);

    fn parts(block: BlockRecord) -> (Part, Option<Part>) {
        let numbers = |part: BlockRecord| (part.address / MIB, part.size / MIB, part.kind);
        (numbers(block.parts().0), block.parts().1.map(numbers))
    }

    #[test]
    fn cut_has_the_kinds_of_its_bytes() {
        let cut = |from, size| parts(block(Some((2, BlockKind::Thp))).cut(from * MIB, size * MIB));
        assert_eq!(cut(5, 3), ((5, 3, 2), None));
        assert_eq!(cut(7, 4), ((7, 1, 2), Some((8, 3, 1))));
        assert_eq!(cut(8, 5), ((8, 5, 1), None));
        assert_eq!(parts(block(None).cut(6 * MIB, MIB)), ((6, 1, 2), None));
    }

    #[test]
    fn block_on_two_kinds_has_two_parts() {
        let seen = |rest| parts(block(rest));
        assert_eq!(seen(None), ((5, 8, 2), None));
        assert_eq!(seen(Some((2, BlockKind::Thp))), ((5, 3, 2), Some((8, 5, 1))));
        // Numbers that no library writes leave the block whole.
        assert_eq!(seen(Some((0, BlockKind::Thp))), ((5, 8, 2), None));
        assert_eq!(seen(Some((900, BlockKind::Thp))), ((5, 8, 2), None));
    }
}
