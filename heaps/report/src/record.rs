//! The records themselves. All addresses are of the process that wrote them; all sizes are bytes.

use crate::{CAUSES, MAGIC, VERSION};

/// How many advised mappings of other libraries are remembered.
pub const MAX_ADVISED: usize = 512;

/// What the memfd mapping holds: where to find the rest.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Signpost {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// `size_of::<Report>()` of the writer.
    pub report_size: u32,
    /// Address of the [`Report`].
    pub report: u64,
}

impl Signpost {
    /// A signpost to the report at `report`.
    #[must_use]
    pub const fn to(report: u64) -> Signpost {
        Signpost { magic: MAGIC, version: VERSION, report_size: size_of::<Report>() as u32, report }
    }

    /// Whether this crate can read what it points to.
    #[must_use]
    pub const fn readable(&self) -> bool {
        u64::from_ne_bytes(self.magic) == u64::from_ne_bytes(MAGIC)
            && self.version == VERSION
            && self.report_size as usize == size_of::<Report>()
    }
}

/// The kind of page that was asked for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pages {
    /// The documented default: today transparent huge pages.
    #[default]
    Auto = 0,
    /// Transparent huge pages (2 MiB on x86-64).
    Thp = 1,
    /// The hugetlb pool of 2 MiB pages.
    Hugetlb = 2,
    /// The hugetlb pool of 1 GiB pages.
    Hugetlb1G = 3,
    /// 64 KiB pages (multi-size THP).
    Medium = 4,
    /// Base pages only.
    Small = 5,
}

impl Pages {
    /// Every kind with the word users write for it.
    pub const WORDS: [(&'static str, Pages); 6] = [
        ("auto", Pages::Auto),
        ("thp", Pages::Thp),
        ("hugetlb", Pages::Hugetlb),
        ("hugetlb-1g", Pages::Hugetlb1G),
        ("64k", Pages::Medium),
        ("4k", Pages::Small),
    ];

    /// The word users write.
    #[must_use]
    pub fn word(self) -> &'static str {
        Pages::WORDS[self as usize].0
    }
}

/// What stands behind one block.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// The slot is empty.
    #[default]
    Free = 0,
    /// Advised for transparent huge pages.
    Thp = 1,
    /// Pages of the hugetlb pool.
    Hugetlb = 2,
    /// Advised against huge pages, or 64 KiB ones.
    Small = 3,
    /// Another library's mapping that was advised.
    Advised = 4,
    /// On more than one kind of page.
    Mixed = 5,
}

/// What a segment of far memory is.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The heap's range: every large block.
    Heap = 0,
    /// A piece of the program's static arrays.
    Static = 1,
    /// Memory that the program mapped itself.
    Mapping = 2,
}

impl Region {
    /// The word for readers of a label; the label may be anything.
    #[must_use]
    pub const fn word(label: u64) -> &'static str {
        const WORDS: [&str; 3] = ["heap", "static", "mapping"];
        if label < WORDS.len() as u64 { WORDS[label as usize] } else { "unknown" }
    }
}

/// Where far pages are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FarStore {
    /// The process that holds them; 0 when it is the program itself.
    pub agent: u64,
    /// The store's name, without secrets, and zeros.
    pub name: [u8; 248],
}

impl FarStore {
    /// A store of this name, cut where there is no more room.
    #[must_use]
    pub fn new(agent: u32, name: &str) -> FarStore {
        let mut store = FarStore { agent: agent.into(), name: [0; 248] };
        let len = name.floor_char_boundary(store.name.len());
        store.name[..len].copy_from_slice(&name.as_bytes()[..len]);
        store
    }

    /// Its name; whatever stands there is text.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        core::str::from_utf8(&self.name[..end]).unwrap_or("?")
    }
}

/// One live block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockRecord {
    /// What the caller of `malloc` got.
    pub address: u64,
    /// Bytes the caller asked for.
    pub size: u64,
    /// A [`Kind`] as a number: the reader may find anything in another process's memory.
    pub kind: u32,
    /// Zero where the whole block is of one kind; else what follows, as [`Rest`] packs it. A free slot keeps the
    /// number of the next free slot here.
    pub rest: u32,
}

/// The second part of a block that is on two kinds of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Number of the units of 2 MiB, counted from the one that the block starts in, before the second part;
    /// from 1 to 2^24 - 1.
    pub spans: u32,
    /// The [`Kind`] of the second part, as a number below 256.
    pub kind: u32,
}

impl Rest {
    /// Both numbers in one word.
    #[must_use]
    pub const fn pack(self) -> u32 {
        self.spans << 8 | self.kind
    }

    /// The numbers in a word; `None` for a block of one kind.
    #[must_use]
    pub const fn unpack(word: u32) -> Option<Rest> {
        if word == 0 { None } else { Some(Rest { spans: word >> 8, kind: word & 0xff }) }
    }
}

/// Running totals since the process started.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Blocks handed out.
    pub allocations: u64,
    /// Blocks given back.
    pub frees: u64,
    /// Bytes asked for, of live blocks.
    pub live_bytes: u64,
    /// Highest value of `live_bytes`.
    pub peak_bytes: u64,
    /// Blocks that found at least half of their memory touched already.
    pub reused: u64,
    /// Bytes handed out that no one had touched before (first touch still to be paid).
    pub fresh_bytes: u64,
    /// Bytes of free memory kept for re-use now.
    pub retained_bytes: u64,
    /// Bytes returned to the kernel by decay, bound or trim.
    pub returned_bytes: u64,
    /// Bytes populated ahead of need.
    pub populated_bytes: u64,
    /// Bytes that `calloc` did not have to clear.
    pub clear_skipped_bytes: u64,
    /// Blocks resized without moving.
    pub resized_in_place: u64,
    /// Blocks whose pages were moved by `mremap`.
    pub moved_by_mremap: u64,
    /// Mappings of other libraries that were advised.
    pub advised_mappings: u64,
    /// Bytes of those.
    pub advised_bytes: u64,
}

impl Counters {
    /// The names of the totals, in the order of [`Counters::all`].
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

    /// Every total.
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

/// Everything a heap says about itself. `generation` is odd while the blocks are being changed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Even: at rest. A reader copies the records and reads again if this has changed.
    pub generation: u64,
    /// Address of the first [`BlockRecord`].
    pub blocks: u64,
    /// Number of slots ever used: live blocks are among them.
    pub slots: u64,
    /// Start of the reserved address range.
    pub range_start: u64,
    /// Its length.
    pub range_len: u64,
    /// Blocks of at least this size are taken ...
    pub min_bytes: u64,
    /// ... up to this size.
    pub max_bytes: u64,
    /// Bytes before the data of a block (R's vector header).
    pub header: u32,
    /// The [`Pages`] asked for.
    pub pages: u32,
    /// 1 while new blocks are taken.
    pub enabled: u32,
    /// 1 when every block is locked in memory.
    pub locked: u32,
    /// 1 when the slots of an R session were patched, 0 when preloaded.
    pub patched: u32,
    /// NUMA policy: -1 first touch, -2 interleave, else the node.
    pub node: i32,
    /// Address of the words of far memory, in the order of `largesse_pager::Count`; 0 without it.
    pub far: u64,
    /// Address of the words of each segment of far memory, as `largesse_pager::SegmentWords`, whose
    /// labels are of [`Region`]; 0 without it.
    pub far_segments: u64,
    /// Address of the [`FarStore`]; 0 without far memory.
    pub far_store: u64,
    /// Totals.
    pub counters: Counters,
    /// How often each [`crate::Cause`] occurred.
    pub not_granted: [u64; CAUSES],
    /// Mappings of other libraries that were advised: address and length, zero when empty.
    pub advised: [[u64; 2]; MAX_ADVISED],
}
