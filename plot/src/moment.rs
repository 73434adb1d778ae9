//! Holds the numbers of which a time line is drawn.

/// The state of far memory at one moment; the last three fields are totals since the start. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the start.
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
    /// Memory that is only in the store, in bytes.
    pub stored: u64,
    /// Bytes read from the store.
    pub swapped_in: u64,
    /// Number of faults handled.
    pub faults: u64,
    /// Bytes written to the store.
    pub written: u64,
}
