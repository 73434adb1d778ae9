//! Chooses the offset of a block in its extent.

use largesse_arena::{Colours, GRANULE, Granules};

/// How the data of blocks are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAlign {
    /// The data, which begin `header` bytes into the block, start at a cache line. Blocks of equal size start at
    /// different offsets within a page.
    Lines,
    /// Blocks start 16 bytes into a page, like those of the C library.
    Native,
}

/// The position of a block in its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    /// Number of bytes from the start of the extent to the block.
    pub(crate) lead: usize,
    /// Length of the extent in granules.
    pub(crate) granules: Granules,
    /// Alignment of the extent in granules.
    pub(crate) align: Granules,
}

const LINE: usize = 64;
const NATIVE_LEAD: usize = 16;
/// Alignment in bytes that needs no aligned extent: the block may start at any multiple of it.
const MALLOC_ALIGN: usize = 16;

/// Returns the layout of a block, or `None` if no extent can have that length or alignment.
pub(crate) fn layout(
    size: usize,
    align: usize,
    header: usize,
    data: DataAlign,
    colours: &mut Colours,
) -> Option<BlockLayout> {
    let lead = match data {
        _ if align > LINE => 0,
        DataAlign::Native if align <= MALLOC_ALIGN => NATIVE_LEAD,
        DataAlign::Native => 0,
        DataAlign::Lines if align <= MALLOC_ALIGN => {
            colours.next_offset() + header.next_multiple_of(LINE) - header
        }
        DataAlign::Lines => colours.next_offset(),
    };
    let granules = u32::try_from(size.checked_add(lead)?.div_ceil(GRANULE).max(1)).ok()?;
    let align = u32::try_from(align.div_ceil(GRANULE)).ok()?;
    Some(BlockLayout { lead, granules, align })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_after_header_start_at_line() {
        for header in [0, 16, 40, 48, 64, 80, 4096] {
            let mut colours = Colours::default();
            for _ in 0..4 {
                let block = layout(1 << 20, 16, header, DataAlign::Lines, &mut colours).unwrap();
                assert_eq!((block.lead + header) % LINE, 0, "header {header}");
                assert!(block.lead < GRANULE, "the block does not start in its first granule");
            }
        }
    }

    #[test]
    fn requested_alignment_wins_over_colour() {
        let mut colours = Colours::default();
        for align in [32, 64, 128, 4096, GRANULE, 1 << 21] {
            let block = layout(1 << 20, align, 48, DataAlign::Lines, &mut colours).unwrap();
            assert_eq!(block.lead % align.min(GRANULE), 0, "align {align}");
            assert_eq!(block.align as usize, align.div_ceil(GRANULE));
        }
    }

    #[test]
    fn native_offset_matches_c_library() {
        let mut colours = Colours::default();
        let lead = |colours: &mut Colours| layout(1 << 20, 16, 48, DataAlign::Native, colours).unwrap().lead;
        assert_eq!((lead(&mut colours), lead(&mut colours)), (16, 16));
    }

    #[test]
    fn oversized_requests_have_no_layout() {
        let mut colours = Colours::default();
        assert_eq!(layout(usize::MAX, 16, 48, DataAlign::Lines, &mut colours), None);
        assert_eq!(layout(usize::MAX / 2, 16, 0, DataAlign::Native, &mut colours), None);
    }
}
