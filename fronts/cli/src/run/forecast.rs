//! Warns of requests that this machine will not grant, as far as that is known before the program starts. The program
//! runs anyway, and the library counts what really happened.

use super::machine::{field, in_list, number, word};
use super::settings::{Node, Settings};
use crate::doctor::probe;
use largesse_machine::unread::{self, Unread};
use largesse_report::{Cause, PageChoice};
use std::path::Path;

const THP: &str = "sys/kernel/mm/transparent_hugepage";
const POOLS: &str = "sys/kernel/mm/hugepages";
/// Number of the capability that exempts a process from the limit on locked memory.
const CAP_IPC_LOCK: u32 = 14;

/// Name of the variable that tells the library which causes were announced, so that it does not repeat them.
pub(super) const VARIABLE: &str = "LARGESSE_FORETOLD";

/// A request that will not be granted.
#[derive(Debug)]
pub(super) struct Shortfall {
    /// Causes that the library may count for the request.
    pub(super) causes: &'static [Cause],
    /// The warning to the user, one line.
    pub(super) text: String,
}

/// Returns each request that this machine, whose files are below `root`, will not grant.
pub(super) fn lines(root: &Path, settings: &Settings) -> Vec<Shortfall> {
    let pages = match settings.pages {
        _ if settings.far => None, // far memory is on base pages
        PageChoice::Auto | PageChoice::Thp => transparent(root),
        PageChoice::Hugetlb => pool(root, 2048),
        PageChoice::Hugetlb1G => pool(root, 1_048_576),
        PageChoice::Medium => medium(root),
        PageChoice::Small => None,
    };
    let lock = if settings.lock { lock(root) } else { None };
    let kind: &[Cause] = match settings.pages {
        PageChoice::Hugetlb | PageChoice::Hugetlb1G => &[Cause::HugetlbPoolEmpty, Cause::HugetlbRefused],
        PageChoice::Medium => &[Cause::Pages64kNotOffered, Cause::Pages64kOvertaken],
        PageChoice::Auto | PageChoice::Thp | PageChoice::Small => {
            &[Cause::ThpNever, Cause::ThpDisabledForProcess, Cause::ThpRefused]
        }
    };
    let lines: [(&[Cause], Option<String>); 3] =
        [(kind, pages), (&[Cause::LockRefused], lock), (&[Cause::NodeRefused], node(root, settings.node))];
    lines.into_iter().filter_map(|(causes, text)| Some(Shortfall { causes, text: text? })).collect()
}

/// Returns the value of [`VARIABLE`]: the names of all causes of `lines`, separated by commas.
pub(super) fn foretold(lines: &[Shortfall]) -> String {
    let names = lines.iter().flat_map(|line| line.causes).map(|cause| cause.name().to_string_lossy());
    names.collect::<Vec<_>>().join(",")
}

fn transparent(root: &Path) -> Option<String> {
    if largesse_pages::thp_disabled_for_process() {
        return Some(
            "transparent huge pages are disabled for this process by a parent \
             (prctl PR_SET_THP_DISABLE): large blocks get small pages"
                .into(),
        );
    }
    match offered(root, 2048) {
        Offer::Given => None,
        Offer::Off { file } => Some(format!(
            "transparent huge pages are off, large blocks get small pages: \
             echo madvise > /{THP}/{file}"
        )),
        Offer::Missing => unread(root, "enabled").map_or_else(|| Some(NO_THP.into()), unreadable),
    }
}

const NO_THP: &str = "this kernel has no transparent huge pages: large blocks get small pages";

/// Returns why a file about transparent huge pages cannot be read, or `None` if it can be read or is absent.
fn unread(root: &Path, file: &str) -> Option<Unread> {
    unread::text(root, &format!("{THP}/{file}")).err()
}

/// Returns the warning for unreadable files, after trying what the kernel grants.
fn unreadable(unread: Unread) -> Option<String> {
    if largesse_pages::thp_mode() == largesse_pages::Thp::Absent {
        return Some(NO_THP.into());
    }
    if probe::transparent_page().is_ok() {
        return None;
    }
    Some(format!("{unread}, and a trial got small pages: large blocks may get small pages"))
}

fn medium(root: &Path) -> Option<String> {
    let off = "64 KiB pages are off, large blocks get 4 KiB pages";
    match offered(root, 64) {
        Offer::Given if matches!(offered(root, 2048), Offer::Given) => Some(format!(
            "2 MiB pages are on as well as 64 KiB ones, and the kernel prefers them: \
             echo never > /{THP}/hugepages-2048kB/enabled"
        )),
        Offer::Given => None,
        Offer::Off { file } => Some(format!("{off}: echo madvise > /{THP}/{file}")),
        Offer::Missing => match unread(root, "hugepages-64kB/enabled") {
            None => Some("this kernel has no 64 KiB pages: large blocks get 4 KiB pages".into()),
            // The library decides by the same trial.
            Some(_) if largesse_pages::medium_pages() == largesse_pages::Offer::Given => None,
            Some(unread) => {
                Some(format!("{unread}, and a trial got small pages: large blocks may get 4 KiB pages"))
            }
        },
    }
}

fn pool(root: &Path, kb: u64) -> Option<String> {
    let instead = "large blocks get transparent huge pages";
    let file = |name: &str| number(root, &format!("{POOLS}/hugepages-{kb}kB/{name}"));
    let Some(free) = file("free_hugepages") else {
        let path = format!("{POOLS}/hugepages-{kb}kB/free_hugepages");
        if let Err(unread) = unread::text(root, &path) {
            let trial = probe::hugetlb_page(kb);
            return trial.err().map(|_| format!("{unread}, and a trial got no such page: {instead}"));
        }
        return Some(format!(
            "this machine has no pool of {} pages: {instead}",
            if kb == 2048 { "2 MiB" } else { "1 GiB" }
        ));
    };
    let beyond =
        file("nr_overcommit_hugepages").unwrap_or(0).saturating_sub(file("surplus_hugepages").unwrap_or(0));
    let available = free.saturating_sub(file("resv_hugepages").unwrap_or(0)) + beyond;
    if available > 0 {
        return None;
    }
    Some(if kb == 2048 {
        format!("the pool of 2 MiB pages has none free, {instead}: sysctl vm.nr_hugepages=N")
    } else {
        format!(
            "the pool of 1 GiB pages has none free, {instead}: \
             echo N > /{POOLS}/hugepages-1048576kB/nr_hugepages"
        )
    })
}

fn lock(root: &Path) -> Option<String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the answer.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    if rc != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let granted = field(root, "proc/self/status", "CapEff")?;
    let rights = u64::from_str_radix(&granted, 16).ok()?;
    lock_line(limit.rlim_cur / 1024, rights, &field(root, "proc/meminfo", "MemTotal")?)
}

/// Returns the warning for a limit on locked memory below half of the machine's memory; a higher limit was probably set
/// on purpose.
fn lock_line(limit_kb: u64, rights: u64, memory: &str) -> Option<String> {
    let memory_kb: u64 = memory.trim_end_matches("kB").trim().parse().ok()?;
    if rights & (1 << CAP_IPC_LOCK) != 0 || limit_kb >= memory_kb / 2 {
        return None;
    }
    Some(format!(
        "the limit on locked memory is {limit_kb} KiB, memory beyond it is not locked: \
         ulimit -l unlimited (see `largesse doctor`)"
    ))
}

fn node(root: &Path, node: Node) -> Option<String> {
    let Node::Number(node) = node else { return None };
    let allowed = field(root, "proc/self/status", "Mems_allowed_list")?;
    (!in_list(&allowed, node)).then(|| {
        format!("this process may not use memory of node {node} (cpuset: {allowed}): blocks are placed by first touch")
    })
}

enum Offer {
    Given,
    /// Name of the file that turns the pages off, below [`THP`].
    Off {
        file: String,
    },
    Missing,
}

/// Returns whether the kernel grants transparent pages of `kb` KiB to programs that ask for them.
fn offered(root: &Path, kb: u32) -> Offer {
    let size_file = format!("hugepages-{kb}kB/enabled");
    let general = chosen(root, "enabled");
    match (chosen(root, &size_file).as_deref(), general.as_deref()) {
        (Some("inherit"), Some("never")) => Offer::Off { file: "enabled".into() },
        (Some("never"), _) => Offer::Off { file: size_file },
        (Some(_), _) => Offer::Given,
        // Before Linux 6.8 a single file controls the only size.
        (None, Some("never")) if kb == 2048 => Offer::Off { file: "enabled".into() },
        (None, Some(_)) if kb == 2048 => Offer::Given,
        (None, _) => Offer::Missing,
    }
}

/// Returns the word in brackets in a file below [`THP`], such as `madvise` in `always [madvise] never`.
fn chosen(root: &Path, file: &str) -> Option<String> {
    let text = word(root, &format!("{THP}/{file}"))?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::root::Root;

    #[track_caller]
    fn check(name: &str, pages: PageChoice, files: &[(&str, &str)], want: Option<&str>) {
        let root = Root::with(name, files);
        let settings = Settings {
            pages,
            lock: false,
            children: true,
            node: Node::FirstTouch,
            node_origin: "",
            far: false,
            report: None,
            report_origin: "",
            variables: Vec::new(),
        };
        let lines = lines(&root.0, &settings);
        match want {
            None => assert!(lines.is_empty(), "{lines:?}"),
            Some(words) => assert!(lines.len() == 1 && lines[0].text.contains(words), "{lines:?}"),
        }
    }

    #[test]
    fn disabled_thp_names_its_file() {
        let (general, size) = (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
        );
        let never = (general, "always madvise [never]\n");
        let madvise = (general, "always [madvise] never\n");
        check("thp-1", PageChoice::Auto, &[madvise], None);
        check("thp-2", PageChoice::Thp, &[never], Some("transparent_hugepage/enabled"));
        check(
            "thp-3",
            PageChoice::Thp,
            &[never, (size, "always [inherit] madvise never")],
            Some("hugepage/enabled"),
        );
        check("thp-4", PageChoice::Thp, &[never, (size, "always inherit [madvise] never")], None);
        check(
            "thp-5",
            PageChoice::Thp,
            &[madvise, (size, "always inherit madvise [never]")],
            Some("2048kB/enabled"),
        );
        check("thp-6", PageChoice::Thp, &[("sys/x", "")], Some("no transparent huge pages"));
        check("thp-7", PageChoice::Small, &[never], None);
    }

    #[test]
    fn disabled_medium_pages_are_announced() {
        let size = "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
        check("64k-1", PageChoice::Medium, &[(size, "always inherit [madvise] never")], None);
        check("64k-2", PageChoice::Medium, &[(size, "always inherit madvise [never]")], Some("64kB/enabled"));
        let both = [
            (size, "always inherit [madvise] never"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ];
        check("64k-4", PageChoice::Medium, &both, Some("2048kB/enabled"));
        check("64k-3", PageChoice::Medium, &[("sys/x", "")], Some("no 64 KiB pages"));
    }

    #[test]
    fn empty_pool_names_the_filling_command() {
        let pool = |name| format!("sys/kernel/mm/hugepages/hugepages-2048kB/{name}");
        let (free, reserved, beyond) =
            (pool("free_hugepages"), pool("resv_hugepages"), pool("nr_overcommit_hugepages"));
        check("pool-1", PageChoice::Hugetlb, &[(&free, "12\n")], None);
        check("pool-2", PageChoice::Hugetlb, &[(&free, "0\n")], Some("sysctl vm.nr_hugepages=N"));
        check("pool-3", PageChoice::Hugetlb, &[(&free, "4\n"), (&reserved, "4\n")], Some("none free"));
        check("pool-4", PageChoice::Hugetlb, &[(&free, "0\n"), (&beyond, "8\n")], None);
        check("pool-5", PageChoice::Hugetlb1G, &[(&free, "12\n")], Some("no pool of 1 GiB pages"));
    }

    #[test]
    fn low_lock_limit_is_announced() {
        let memory = "24000000 kB";
        assert!(lock_line(8192, 0, memory).unwrap().contains("8192 KiB"));
        assert_eq!(lock_line(8192, 1 << CAP_IPC_LOCK, memory), None);
        assert_eq!(lock_line(12_000_000, 0, memory), None);
    }
}
