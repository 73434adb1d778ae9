//! Defines the input of a time line: the state of far memory at many moments.

/// The state of far memory at one moment. The last three fields are totals since the start of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the start of the program.
    pub seconds: f64,
    /// Transfer size in the regions where most pages are filled, in bytes.
    pub set: u64,
    /// Smallest transfer size of all regions, in bytes.
    pub least_set: u64,
    /// Largest transfer size of all regions, in bytes.
    pub most_set: u64,
    /// Limit on resident memory, in bytes.
    pub local: u64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Memory whose contents are only in the store, in bytes.
    pub stored: u64,
    /// Number of bytes read from the store since the start.
    pub swapped_in: u64,
    /// Number of faults handled since the start.
    pub faults: u64,
    /// Number of bytes written to the store since the start.
    pub written: u64,
}
