//! Why a request was served with less than it asked for.

/// One reason; its number indexes [`crate::Report::not_granted`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The reserved address range is used up; the C library served the block.
    RangeFull = 0,
    /// The kernel, or the store of far memory, refused memory (ENOMEM): the caller got NULL.
    OutOfMemory = 1,
    /// The hugetlb pool had too few free pages; transparent huge pages were used.
    HugetlbPoolEmpty = 2,
    /// hugetlb was refused for another reason (no pool of this size, no permission).
    HugetlbRefused = 3,
    /// `/sys/kernel/mm/transparent_hugepage/enabled` is `never`.
    ThpNever = 4,
    /// Transparent huge pages are disabled for this process (`prctl(PR_SET_THP_DISABLE)`).
    ThpDisabledForProcess = 5,
    /// `madvise(MADV_HUGEPAGE)` failed: a kernel without transparent huge pages.
    ThpRefused = 6,
    /// 64 KiB pages were asked for and `hugepages-64kB/enabled` does not offer them.
    Pages64kNotOffered = 7,
    /// 64 KiB pages were asked for, and the kernel is set to prefer 2 MiB ones.
    Pages64kOvertaken = 8,
    /// `mlock` was refused: the limit on locked memory (`ulimit -l`).
    LockRefused = 9,
    /// `mbind` was refused: no such node, or forbidden in this container.
    NodeRefused = 10,
    /// A forked child's hugetlb blocks were copied to ordinary pages.
    DemotedInChild = 11,
    /// Moving a grown block by page tables failed; it was copied.
    MoveRefused = 12,
    /// Populating memory ahead of need was refused.
    PopulateRefused = 13,
    /// A shared object could not be patched, so that its calls are not seen.
    SlotNotPatched = 14,
    /// The signpost for `largesse status` could not be made.
    SignpostRefused = 15,
    /// A helper thread could not be started; nothing is populated ahead of need.
    HelperRefused = 16,
    /// Before Linux 6.8 a page of far memory that a device writes to may leave meanwhile: `O_DIRECT` and
    /// io_uring are refused.
    DirectInputRefused = 17,
    /// A large mapping stays out of far memory: reserved, fixed, a stack, or for a special kind of page.
    MappingNear = 18,
    /// `mlock` of far memory was refused.
    FarNotLocked = 19,
    /// `madvise` or `mremap` asked for what far memory cannot do.
    FarAdvice = 20,
    /// Another allocator serves every block of the program.
    OtherAllocator = 21,
    /// Large pages could have exceeded a limit on memory; small ones were used.
    NearLimit = 22,
}

/// Number of causes.
pub const CAUSES: usize = 23;

impl Cause {
    /// Every cause, in the order of its number.
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

    /// A stable, short name for machines (`largesse status --json`).
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

    /// What to tell a person: what happened and what to type.
    #[must_use]
    pub const fn advice(self) -> &'static core::ffi::CStr {
        match self {
            Cause::RangeFull => c"the reserved address range is full; the C library serves what comes now (raise `ulimit -v`)",
            Cause::OutOfMemory => c"the kernel, or the store of far memory, refused memory; the program was told NULL (see `ulimit -a`; `largesse doctor`: overcommit, cgroup)",
            Cause::HugetlbPoolEmpty => c"the hugetlb pool has too few free pages, transparent huge pages were used: sysctl vm.nr_hugepages=N",
            Cause::HugetlbRefused => c"hugetlb pages of this size are not available, transparent huge pages were used (see `largesse doctor`)",
            Cause::ThpNever => c"transparent huge pages are off: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            Cause::ThpDisabledForProcess => c"transparent huge pages are disabled for this process by prctl(PR_SET_THP_DISABLE) of a parent",
            Cause::ThpRefused => c"madvise(MADV_HUGEPAGE) failed: this kernel has no transparent huge pages",
            Cause::Pages64kNotOffered => c"64 KiB pages are off, 4 KiB ones were used: echo madvise > /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
            Cause::Pages64kOvertaken => c"2 MiB pages are on too and the kernel prefers them: echo never > /sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
            Cause::LockRefused => c"the limit on locked memory is too low (`ulimit -l`); the pages are not locked (see `largesse doctor`)",
            Cause::NodeRefused => c"mbind was refused: no such NUMA node, or forbidden by the container; memory is placed by first touch",
            Cause::DemotedInChild => c"a forked child copied its hugetlb blocks to ordinary pages, so that it cannot die of an empty pool",
            Cause::MoveRefused => c"a growing block was copied, because its pages could not be moved (vm.max_map_count?)",
            Cause::PopulateRefused => c"memory could not be prepared ahead of need (kernel before 5.14, or memory is short)",
            Cause::SlotNotPatched => c"a shared object could not be patched; its large blocks stay with the C library",
            Cause::SignpostRefused => c"memfd_create was refused, so `largesse status` cannot see this process",
            Cause::HelperRefused => c"the helper thread could not be started; nothing is prepared ahead of need",
            Cause::DirectInputRefused => c"this kernel cannot keep far pages that a device writes to (Linux 6.8 can): O_DIRECT and io_uring were refused",
            Cause::MappingNear => c"large mappings that were only reserved, at a fixed address, stacks or on special pages stay in memory, beyond --local",
            Cause::FarNotLocked => c"far memory cannot be locked in memory: mlock was answered with ENOMEM (programs that need it cannot use --local)",
            Cause::NearLimit => c"large pages could have exceeded the limit on memory (of the control group, or of the machine), small ones were used: raise the limit",
            Cause::FarAdvice => c"a request of madvise or mremap that far memory cannot follow was refused",
            Cause::OtherAllocator => c"the program has another allocator, which serves every block: start it without that one (LD_PRELOAD), or link it without",
        }
    }
}
