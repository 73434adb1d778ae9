//! Where in its extent a block starts.

use largesse_arena::{Colours, GRANULE, Granules};

/// Alignment of a block's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAlign {
    /// The data, which begin `header` bytes into the block, start at a cache line, and blocks of
    /// equal size at different offsets of a page.
    Lines,
    /// As the C library does it: 16 bytes into a page.
    Native,
}

/// A block's place in its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the start of the extent to the block.
    pub(crate) lead: usize,
    /// Length of the extent.
    pub(crate) granules: Granules,
    /// Alignment of the extent, in granules.
    pub(crate) align: Granules,
}

const LINE: usize = 64;
const NATIVE_LEAD: usize = 16;
/// Alignments up to here are served with any start of an extent.
const MALLOC_ALIGN: usize = 16;

/// `None`: no extent can be that long or that aligned.
pub(crate) fn place(
    size: usize,
    align: usize,
    header: usize,
    data: DataAlign,
    colours: &mut Colours,
) -> Option<Place> {
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
    Some(Place { lead, granules, align })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_behind_the_header_start_at_a_line() {
        for header in [0, 16, 40, 48, 64, 80, 4096] {
            let mut colours = Colours::default();
            for _ in 0..4 {
                let place = place(1 << 20, 16, header, DataAlign::Lines, &mut colours).unwrap();
                assert_eq!((place.lead + header) % LINE, 0, "header {header}");
                assert!(place.lead < GRANULE, "the block starts in its first granule");
            }
        }
    }

    #[test]
    fn requested_alignment_wins_over_colour() {
        let mut colours = Colours::default();
        for align in [32, 64, 128, 4096, GRANULE, 1 << 21] {
            let place = place(1 << 20, align, 48, DataAlign::Lines, &mut colours).unwrap();
            assert_eq!(place.lead % align.min(GRANULE), 0, "align {align}");
            assert_eq!(place.align as usize, align.div_ceil(GRANULE));
        }
    }

    #[test]
    fn native_starts_where_the_c_library_does() {
        let mut colours = Colours::default();
        let lead = |colours: &mut Colours| place(1 << 20, 16, 48, DataAlign::Native, colours).unwrap().lead;
        assert_eq!((lead(&mut colours), lead(&mut colours)), (16, 16));
    }

    #[test]
    fn absurd_sizes_have_no_place() {
        let mut colours = Colours::default();
        assert_eq!(place(usize::MAX, 16, 48, DataAlign::Lines, &mut colours), None);
        assert_eq!(place(usize::MAX / 2, 16, 0, DataAlign::Native, &mut colours), None);
    }
}
