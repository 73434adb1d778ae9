//! Describes a fault, and which pages around the faulting page are resident.

use core::ops::Range;

/// How a program uses the pages around a page that it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// The neighbours are used as well, or nothing is known.
    #[default]
    Dense = 0,
    /// The neighbours are not used: the program steps over them.
    Strided = 1,
}

impl Access {
    /// All kinds of access, in the order of their numbers.
    pub const ALL: [Access; 2] = [Access::Dense, Access::Strided];
}

/// A fault on a page that is not resident, with what is known of the pages around it.
#[derive(Clone, Copy, Debug)]
pub struct FaultContext {
    /// Number of the faulting page.
    pub page: usize,
    /// Whether the page before (`[0]`) and the page after (`[1]`) the faulting page are resident.
    pub resident_neighbours: [bool; 2],
    /// Whether every page of the transfer unit that lies before (`[0]`) and after (`[1]`) the faulting page is
    /// resident: evidence of a sequential scan in that direction.
    pub scanned: [bool; 2],
    /// Sizes of the transfer units at the faulting page, in pages, by [`Access`].
    pub units: [usize; 2],
}

impl FaultContext {
    /// Describes a fault at `page`, in the segment with the pages `within`. `units` are the sizes of transfer units
    /// there by [`Access`], and `is_resident` returns whether another page is resident.
    pub fn new(
        page: usize,
        units: [usize; 2],
        within: &Range<usize>,
        is_resident: impl Fn(usize) -> bool,
    ) -> FaultContext {
        let unit = units[Access::Dense as usize];
        let first = page / unit * unit;
        let resident_neighbours =
            [within.start < page && is_resident(page - 1), page + 1 < within.end && is_resident(page + 1)];
        let scanned = [
            resident_neighbours[0] && (first.max(within.start)..page).all(&is_resident),
            resident_neighbours[1] && (page + 1..(first + unit).min(within.end)).all(&is_resident),
        ];
        FaultContext { page, resident_neighbours, scanned, units }
    }

    /// Returns whether a sequential scan in this direction (`forward`: to higher pages) may have caused the fault.
    pub(super) fn is_scan(&self, forward: bool) -> bool {
        self.scanned[usize::from(!forward)]
    }

    /// Returns whether a sequential scan in either direction may have caused the fault.
    pub(super) fn is_part_of_scan(&self) -> bool {
        self.scanned != [false; 2]
    }
}
