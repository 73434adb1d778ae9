//! Holds the results of the requested measurements.

use super::measure::bandwidth::Bandwidth;
use super::measure::cores::CorePair;
use super::measure::ladder::Ladder;

/// The measurements, or `None` for those that were not requested.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) bandwidth: Option<Bandwidth>,
    pub(super) ladder: Option<Vec<Ladder>>,
    pub(super) cores: Option<Vec<CorePair>>,
}
