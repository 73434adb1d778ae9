//! The kinds of requests that a backing refuses.

/// A kind of request that near memory refused, in whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The hugetlb pool had too few free pages.
    PoolEmpty,
    /// The kernel refused hugetlb pages for another reason.
    PoolRefused,
    /// Pages could not be locked.
    Lock,
    /// Pages could not be placed on their NUMA node.
    Place,
    /// Pages could not be moved.
    Move,
    /// Pages could not be populated.
    Populate,
    /// Large pages were not used, because they could exceed the memory limit.
    NearLimit,
}
