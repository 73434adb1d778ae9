//! Names the causes for which a request is served with less than it asked for.

/// A reason for which a request was served with less than it asked for. Its number is an index of
/// [`crate::HeapReport::not_granted`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The reserved address range is full; the C library served the block.
    RangeFull = 0,
    /// The kernel, or the store of far memory, refused memory (ENOMEM); the caller got NULL.
    OutOfMemory = 1,
    /// The hugetlb pool had too few free pages; transparent huge pages were used.
    HugetlbPoolEmpty = 2,
    /// The kernel refused hugetlb pages for another reason (no pool of this size, no permission).
    HugetlbRefused = 3,
    /// The system-wide mode in `/sys/kernel/mm/transparent_hugepage/enabled` is `never`.
    ThpNever = 4,
    /// Transparent huge pages are disabled for this process (`prctl(PR_SET_THP_DISABLE)`).
    ThpDisabledForProcess = 5,
    /// The kernel refused `madvise(MADV_HUGEPAGE)`, because it has no transparent huge pages.
    ThpRefused = 6,
    /// 64 KiB pages were requested, but `hugepages-64kB/enabled` does not offer them.
    Pages64kNotOffered = 7,
    /// 64 KiB pages were requested, but the kernel is configured to prefer 2 MiB ones.
    Pages64kOvertaken = 8,
    /// The kernel refused `mlock`, because of the limit on locked memory (`ulimit -l`).
    LockRefused = 9,
    /// The kernel refused `mbind`: the NUMA node does not exist, or is forbidden in this container.
    NodeRefused = 10,
    /// The hugetlb blocks of a forked child were copied to ordinary pages.
    DemotedInChild = 11,
    /// A growing block was copied, because the kernel refused to move its pages to another address.
    MoveRefused = 12,
    /// The kernel refused to populate memory ahead of need.
    PopulateRefused = 13,
    /// A shared object could not be patched, so that its calls are not intercepted.
    SlotNotPatched = 14,
    /// The memory file by which `largesse status` finds the process could not be created.
    SignpostRefused = 15,
    /// A helper thread could not be started; no memory is populated ahead of need.
    HelperRefused = 16,
    /// `O_DIRECT` and io_uring are refused: before Linux 6.8 a page of far memory may be evicted while a device writes
    /// to it.
    DirectInputRefused = 17,
    /// A large mapping is not in far memory: it is executable, fixed, a stack, larger than the machine's memory, or for a
    /// special kind of page.
    MappingNear = 18,
    /// The library refused `mlock` of far memory.
    FarNotLocked = 19,
    /// The library refused a request of `madvise` or `mremap` that far memory does not support.
    FarAdvice = 20,
    /// Another allocator, which is linked to the program or preloaded, serves all of its blocks.
    OtherAllocator = 21,
    /// Small pages were used, because large ones could have exceeded the memory limit.
    NearLimit = 22,
}

/// Number of causes.
pub const CAUSES: usize = 23;

impl Cause {
    /// Lists every cause, in the order of the numbers.
    pub const ALL: [Cause; CAUSES] = [
        Cause::RangeFull,
        Cause::OutOfMemory,
        Cause::HugetlbPoolEmpty,
        Cause::HugetlbRefused,
        Cause::ThpNever,
        Cause::ThpDisabledForProcess,
        Cause::ThpRefused,
        Cause::Pages64kNotOffered,
        Cause::Pages64kOvertaken,
        Cause::LockRefused,
        Cause::NodeRefused,
        Cause::DemotedInChild,
        Cause::MoveRefused,
        Cause::PopulateRefused,
        Cause::SlotNotPatched,
        Cause::SignpostRefused,
        Cause::HelperRefused,
        Cause::DirectInputRefused,
        Cause::MappingNear,
        Cause::FarNotLocked,
        Cause::FarAdvice,
        Cause::OtherAllocator,
        Cause::NearLimit,
    ];

    /// Returns a stable, short name for programs (`largesse status --json`).
    #[must_use]
    pub const fn name(self) -> &'static core::ffi::CStr {
        match self {
            Cause::RangeFull => c"range-full",
            Cause::OutOfMemory => c"out-of-memory",
            Cause::HugetlbPoolEmpty => c"hugetlb-pool-empty",
            Cause::HugetlbRefused => c"hugetlb-refused",
            Cause::ThpNever => c"thp-never",
            Cause::ThpDisabledForProcess => c"thp-disabled-for-process",
            Cause::ThpRefused => c"thp-refused",
            Cause::Pages64kNotOffered => c"64k-not-offered",
            Cause::Pages64kOvertaken => c"64k-overtaken-by-2m",
            Cause::LockRefused => c"lock-refused",
            Cause::NodeRefused => c"node-refused",
            Cause::DemotedInChild => c"demoted-in-child",
            Cause::MoveRefused => c"move-refused",
            Cause::PopulateRefused => c"populate-refused",
            Cause::SlotNotPatched => c"slot-not-patched",
            Cause::SignpostRefused => c"signpost-refused",
            Cause::HelperRefused => c"helper-refused",
            Cause::DirectInputRefused => c"direct-input-refused",
            Cause::MappingNear => c"mapping-near",
            Cause::FarNotLocked => c"far-not-locked",
            Cause::FarAdvice => c"far-advice",
            Cause::OtherAllocator => c"other-allocator",
            Cause::NearLimit => c"near-limit",
        }
    }

    /// Returns the message for users: what happened and what to type.
    #[must_use]
    pub const fn advice(self) -> &'static core::ffi::CStr {
        match self {
            Cause::RangeFull => c"the reserved address range is full; the C library serves further large blocks (raise `ulimit -v`)",
            Cause::OutOfMemory => c"the kernel, or the store of far memory, refused memory; the program got NULL (see `ulimit -a`; `largesse doctor`: overcommit, cgroup)",
            Cause::HugetlbPoolEmpty => c"the hugetlb pool has too few free pages, transparent huge pages were used: sysctl vm.nr_hugepages=N",
            Cause::HugetlbRefused => c"hugetlb pages of this size are not available, transparent huge pages were used (see `largesse doctor`)",
            Cause::ThpNever => c"transparent huge pages are off; to switch them on: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            Cause::ThpDisabledForProcess => c"transparent huge pages are disabled for this process by prctl(PR_SET_THP_DISABLE) of a parent",
            Cause::ThpRefused => c"madvise(MADV_HUGEPAGE) failed: this kernel has no transparent huge pages",
            Cause::Pages64kNotOffered => c"64 KiB pages are off, 4 KiB ones were used; to switch them on: echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            Cause::Pages64kOvertaken => c"the kernel prefers 2 MiB pages, which are on, to 64 KiB ones; to switch them off: echo never > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
            Cause::LockRefused => c"the limit on locked memory is too low (`ulimit -l`); the pages are not locked (see `largesse doctor`)",
            Cause::NodeRefused => c"mbind was refused: no such NUMA node, or forbidden by the container; memory is placed by first touch",
            Cause::DemotedInChild => c"a forked child copied its hugetlb blocks to ordinary pages, so that it cannot die of an empty pool",
            Cause::MoveRefused => c"a growing block was copied, because its pages could not be moved (see `sysctl vm.max_map_count`)",
            Cause::PopulateRefused => c"memory could not be prepared ahead of need (the kernel is older than 5.14, or memory is short)",
            Cause::SlotNotPatched => c"a shared object could not be patched; its large blocks stay with the C library",
            Cause::SignpostRefused => c"memfd_create was refused, so `largesse status` cannot see this process",
            Cause::HelperRefused => c"the helper thread could not be started; nothing is prepared ahead of need",
            Cause::DirectInputRefused => c"this kernel cannot keep far pages that a device writes to in place (Linux 6.8 can): O_DIRECT and io_uring were refused, and before Linux 5.19 process_vm_writev into other processes",
            Cause::MappingNear => c"large mappings that are executable, at a fixed address, stacks, far larger than the memory of the machine, or on special pages stay in memory and do not count against --local",
            Cause::FarNotLocked => c"far memory cannot be locked in memory: mlock failed with ENOMEM (programs that need it cannot use --local)",
            Cause::NearLimit => c"large pages could have exceeded the limit on memory (of the control group, or of the machine), small ones were used (raise the limit)",
            Cause::FarAdvice => c"a request of madvise, mremap or pkey_mprotect that far memory does not support was refused",
            Cause::OtherAllocator => c"the program has another allocator, which serves every block: remove it from LD_PRELOAD, or link the program without it",
        }
    }
}
