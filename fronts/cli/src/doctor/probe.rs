//! Tries whether system calls are granted, which no file tells. Each is tried in a forked child, so that a filter that
//! kills the caller kills only that child.
//!
//! # Invariants
//! 1. The child calls one function and `_exit`s, so that no destructor of the parent runs twice.
//! 2. A trial changes nothing outside the child.
#![expect(
    clippy::disallowed_methods,
    reason = "trying a call that may be forbidden is the doctor's work, not the heap's"
)]

use super::live::{Device, Live, Verdict};
use largesse_machine::pin;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;

const USERFAULTFD: &str = "/dev/userfaultfd";
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const USERFAULTFD_IOC_NEW: libc::Ioctl = 0xaa00;
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;

/// A call that may be forbidden, which returns its errno as the error.
type Trial = fn() -> Result<(), i32>;

const TRIALS: &[(&str, Trial)] = &[
    ("thp", transparent_page),
    ("hugetlb", || hugetlb_page(2048)),
    ("populate", populate),
    ("collapse", collapse),
    ("pagemap_scan", pagemap_scan),
    ("memfd_create", memfd),
    ("mbind", mbind),
    ("move_pages", move_pages),
    ("userfaultfd_device", userfaultfd_device),
    ("userfaultfd", || userfaultfd(0)),
    ("userfaultfd_user", || userfaultfd(UFFD_USER_MODE_ONLY)),
    ("perf_event_open", perf_event_open),
];

/// Tries every system call of [`TRIALS`] in a child, and returns the results, with other facts that are in no file of
/// the kernel. `preload` is the value of `LD_PRELOAD`.
pub(crate) fn live(preload: Option<String>) -> Live {
    let trials = TRIALS.iter().map(|&(name, trial)| (name.to_owned(), in_child(trial))).collect();
    // SAFETY: takes no pointers; the four unused arguments are zero, as the call requires.
    let disable = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
    let device = std::fs::metadata(USERFAULTFD).ok().map(|data| Device {
        mode: data.mode() & 0o7777,
        user: data.uid(),
        group: data.gid(),
    });
    let page_size = u64::try_from(page_size()).ok();
    Live { trials, thp_disable: u32::try_from(disable).ok(), page_size, device, preload }
}

/// Facts about this machine and process from system calls, which agree with the files of `/proc`.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) kernel: String,
    /// Bytes of memory of the machine.
    pub(crate) memory: u64,
    /// Number of processors on which this process may run.
    pub(crate) processors: Option<usize>,
    pub(crate) user: u32,
    pub(crate) groups: Vec<u32>,
    /// Bits of the effective capabilities.
    pub(crate) capabilities: u64,
    pub(crate) seccomp: bool,
    /// Whether `/sys` is mounted read-only.
    pub(crate) read_only: bool,
}

pub(crate) fn asked() -> Asked {
    // SAFETY: takes nothing and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    Asked {
        kernel: kernel_release(),
        memory: largesse_pages::physical_memory() as u64,
        processors: pin::current().ok().map(|cpus| cpus.len()),
        user,
        groups: std::iter::once(group).chain(groups()).collect(),
        capabilities: capabilities(),
        // SAFETY: takes numbers only. Strict mode would kill this process, but it forbids earlier calls as well.
        seccomp: unsafe { libc::prctl(libc::PR_GET_SECCOMP) } > 0,
        read_only: is_read_only(c"/sys"),
    }
}

/// Returns the release of the kernel, such as `6.18.44`.
pub(crate) fn kernel_release() -> String {
    // SAFETY: `utsname` consists of arrays of characters, for which zero is a valid value.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `names` has room for the answer.
    if unsafe { libc::uname(&raw mut names) } != 0 {
        return String::new();
    }
    // SAFETY: the kernel ends each name with a zero.
    unsafe { CStr::from_ptr(names.release.as_ptr()) }.to_string_lossy().into_owned()
}

fn groups() -> Vec<u32> {
    // SAFETY: with a size of 0 the call writes nothing and returns the number of groups.
    let count = unsafe { libc::getgroups(0, ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: `groups` has as many entries as the call is told.
    let got = unsafe { libc::getgroups(count.max(0), groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(got).unwrap_or(0));
    groups
}

fn capabilities() -> u64 {
    // The header is struct __user_cap_header_struct, version 3, with 0 for this process. The bits are two structures
    // of effective, permitted and inheritable bits: the lower 32, then the upper 32.
    let header = [0x2008_0522_u32, 0];
    let mut bits = [[0_u32; 3]; 2];
    // SAFETY: both arrays have the size of this version's structures.
    let rc = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), bits.as_mut_ptr()) };
    if rc == 0 { u64::from(bits[0][0]) | u64::from(bits[1][0]) << 32 } else { 0 }
}

fn is_read_only(folder: &CStr) -> bool {
    // SAFETY: `statvfs` consists of numbers, for which zero is a valid value.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string, and `about` has room for the answer.
    let rc = unsafe { libc::statvfs(folder.as_ptr(), &raw mut about) };
    rc == 0 && about.f_flag & libc::ST_RDONLY != 0
}

/// Returns whether this process has the rights of root.
pub(crate) fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn in_child(trial: Trial) -> Verdict {
    // SAFETY: the doctor has one thread, so the child may do whatever the parent may.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Verdict::Refused(errno());
    }
    if child == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: points to a whole `rlimit`. A child that is killed leaves no core behind.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        let code = trial().map_or_else(|errno| errno.clamp(1, 255), |()| 0);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    loop {
        // SAFETY: `status` is a local variable with room for the answer.
        let rc = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if rc == child {
            break;
        }
        if errno() != libc::EINTR {
            return Verdict::Refused(errno());
        }
    }
    if libc::WIFSIGNALED(status) {
        return Verdict::Killed(libc::WTERMSIG(status));
    }
    match libc::WEXITSTATUS(status) {
        0 => Verdict::Granted,
        errno => Verdict::Refused(errno),
    }
}

/// Requests a transparent huge page and checks that it was granted: returns `ENOMEM` for a small page, and `EINVAL`
/// from a kernel without huge pages.
pub(crate) fn transparent_page() -> Result<(), i32> {
    // The file may be hidden; 2 MiB is the usual size.
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok())
        .unwrap_or(2 << 20);
    let start = map(2 * huge, 0)?;
    let page = start.map_addr(|address| address.next_multiple_of(huge));
    advise(page, huge, libc::MADV_HUGEPAGE)?;
    // SAFETY: `page` begins a huge page inside the mapping of two, which is writable.
    unsafe { page.write_volatile(1) };
    let came = match std::fs::read_to_string("/proc/self/smaps") {
        Ok(maps) => huge_bytes_at(&maps, page.addr()) > 0,
        Err(_) => is_resident(page, huge),
    };
    if came { Ok(()) } else { Err(libc::ENOMEM) }
}

/// Returns whether a whole range is in memory, as it is after one write if that allocated a single huge page for it.
fn is_resident(start: *mut u8, len: usize) -> bool {
    let mut pages = vec![0_u8; len.div_ceil(page_size())];
    // SAFETY: `pages` has one byte for each page of the range.
    let rc = unsafe { libc::mincore(start.cast(), len, pages.as_mut_ptr()) };
    rc == 0 && pages.iter().all(|page| page & 1 == 1)
}

/// Returns `AnonHugePages`, in KiB, of the mapping that contains `address`.
fn huge_bytes_at(smaps: &str, address: usize) -> u64 {
    let mut inside = false;
    for line in smaps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some((start, end)) = first.split_once('-') {
            let hex = |text| usize::from_str_radix(text, 16).ok();
            inside = hex(start).zip(hex(end)).is_some_and(|(start, end)| (start..end).contains(&address));
        } else if inside && first == "AnonHugePages:" {
            return rest.trim().trim_end_matches(" kB").parse().unwrap_or(0);
        }
    }
    0
}

/// Reserves one page of the pool of pages of `kib` KiB, a power of two, without touching it, and releases it.
pub(crate) fn hugetlb_page(kib: u64) -> Result<(), i32> {
    let len = usize::try_from(kib << 10).map_err(|_| libc::EINVAL)?;
    let shift = i32::try_from(len.trailing_zeros()).map_err(|_| libc::EINVAL)?;
    let page = map(len, libc::MAP_HUGETLB | shift << libc::MAP_HUGE_SHIFT)?;
    // SAFETY: the mapping is new, and no other code knows the address.
    unsafe { libc::munmap(page.cast(), len) };
    Ok(())
}

fn populate() -> Result<(), i32> {
    advise(map(page_size(), 0)?, page_size(), libc::MADV_POPULATE_WRITE)
}

fn collapse() -> Result<(), i32> {
    let huge = 2 << 20;
    let page = map(2 * huge, 0)?.map_addr(|address| address.next_multiple_of(huge));
    // SAFETY: `page` begins an aligned range inside the mapping of two, which is writable.
    unsafe { page.write_volatile(1) };
    match advise(page, huge, libc::MADV_COLLAPSE) {
        // The kernel knows the call, but no huge page is free at the moment.
        Err(libc::EAGAIN | libc::ENOMEM | libc::EBUSY) => Ok(()),
        other => other,
    }
}

fn pagemap_scan() -> Result<(), i32> {
    let page = map(page_size(), 0)?;
    let start = page.addr() as u64;
    let end = start + page_size() as u64;
    let found = [0_u64; 3];
    let present = 1 << 3;
    // struct pm_scan_arg: size, flags, start, end, walk_end, vec, vec_len, max_pages and four masks.
    let mut request = [96, 0, start, end, 0, found.as_ptr().addr() as u64, 1, 0, 0, 0, present, present];
    let pagemap =
        File::open("/proc/self/pagemap").map_err(|error| error.raw_os_error().unwrap_or(libc::EACCES))?;
    // SAFETY: the request is a whole `pm_scan_arg`, its `vec` is one `page_region` that lives on.
    done(unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, request.as_mut_ptr()) }.into())
}

fn memfd() -> Result<(), i32> {
    // SAFETY: the name is a terminated string that lives on.
    done(unsafe { libc::memfd_create(c"largesse-doctor".as_ptr(), libc::MFD_CLOEXEC) }.into())
}

fn mbind() -> Result<(), i32> {
    let page = map(page_size(), 0)?;
    let no_nodes = ptr::null::<libc::c_ulong>();
    // SAFETY: a page of our own keeps the default policy; a null mask of zero bits is never read.
    done(unsafe {
        libc::syscall(libc::SYS_mbind, page, page_size(), libc::MPOL_DEFAULT, no_nodes, 0_usize, 0_usize)
    })
}

fn move_pages() -> Result<(), i32> {
    let pages = [map(page_size(), 0)?];
    let mut nodes = [0_i32];
    let stay = ptr::null::<libc::c_int>();
    // SAFETY: one page asked about, one answer written; without target nodes nothing moves.
    done(unsafe {
        libc::syscall(libc::SYS_move_pages, 0, 1_usize, pages.as_ptr(), stay, nodes.as_mut_ptr(), 0)
    })
}

fn userfaultfd(flags: libc::c_int) -> Result<(), i32> {
    // SAFETY: takes no pointers; the descriptor goes with the child.
    done(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | flags) })
}

fn userfaultfd_device() -> Result<(), i32> {
    let device = File::options()
        .read(true)
        .write(true)
        .open(USERFAULTFD)
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EACCES))?;
    // SAFETY: this request takes flags, no pointer.
    done(unsafe { libc::ioctl(device.as_raw_fd(), USERFAULTFD_IOC_NEW, libc::O_CLOEXEC) }.into())
}

fn perf_event_open() -> Result<(), i32> {
    // struct perf_event_attr, first version: type and size, config, …, flags at byte 40.
    let (software, size, page_faults, exclude_kernel) = (1_u64, 64_u64, 2_u64, 1_u64 << 5);
    let attributes = [software | size << 32, page_faults, 0, 0, 0, exclude_kernel, 0, 0];
    // SAFETY: the attributes are as long as they say; the counter goes with the child.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) };
    done(fd)?;
    // SAFETY: the kernel just made this descriptor, which has no other owner.
    drop(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).map_err(|_| libc::EBADF)?) });
    Ok(())
}

/// Maps private memory, which is never unmapped, since the child is about to end.
fn map(len: usize, flags: libc::c_int) -> Result<*mut u8, i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: no address is asked for, so no mapping is replaced.
    let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(errno()) } else { Ok(start.cast()) }
}

fn advise(start: *mut u8, len: usize, advice: libc::c_int) -> Result<(), i32> {
    // SAFETY: the range is inside a mapping that `map` made and no other code uses.
    done(unsafe { libc::madvise(start.cast(), len, advice) }.into())
}

fn page_size() -> usize {
    // SAFETY: takes no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn done(rc: libc::c_long) -> Result<(), i32> {
    if rc < 0 { Err(errno()) } else { Ok(()) }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_facts_are_those_of_proc() {
        let tree = super::super::tree::Tree::new(std::path::Path::new("/"));
        let (asked, read) = (asked(), super::super::machine::MachineFacts::read(&tree, &Live::default()));
        assert_eq!((&asked.kernel, asked.processors, asked.user), (&read.kernel, read.processors, read.user));
        assert_eq!(asked.capabilities, read.capabilities);
        assert_eq!((asked.seccomp, asked.read_only), (read.seccomp, read.read_only));
        assert!(asked.memory.abs_diff(read.memory) < 1 << 20, "{} {}", asked.memory, read.memory);
        assert!(read.groups.iter().all(|group| asked.groups.contains(group)), "{asked:?} {read:?}");
    }

    #[test]
    fn small_pages_are_resident_one_by_one() {
        let (page, huge) = (page_size(), 2 << 20);
        let start = map(huge, 0).unwrap();
        advise(start, huge, libc::MADV_NOHUGEPAGE).unwrap();
        // SAFETY: the mapping is writable.
        unsafe { start.write_volatile(1) };
        assert!(is_resident(start, page) && !is_resident(start, 2 * page));
    }

    #[test]
    fn killed_child_differs_from_refusal() {
        assert_eq!(in_child(|| Ok(())), Verdict::Granted);
        assert_eq!(in_child(|| Err(libc::EPERM)), Verdict::Refused(libc::EPERM));
        let die = || {
            // SAFETY: ends the child, which is what is tried here.
            unsafe { libc::kill(libc::getpid(), libc::SIGSYS) };
            Ok(())
        };
        assert_eq!(in_child(die), Verdict::Killed(libc::SIGSYS));
    }

    #[test]
    fn mapping_of_address_is_found() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nAnonHugePages:  0 kB\n\
                     200000-600000 rw-p 0 00:00 0 \nSize: 4096 kB\nAnonHugePages:      2048 kB\n";
        assert_eq!(huge_bytes_at(smaps, 0x40_0000), 2048);
        assert_eq!(huge_bytes_at(smaps, 0x1000), 0);
        assert_eq!(huge_bytes_at(smaps, 0x70_0000), 0);
    }
}
