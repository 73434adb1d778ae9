//! Checks hugetlb: the pool of each page size by node, the mounts, and the group that may share pages.

use crate::doctor::finding::Subject::Hugetlb;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Live, Verdict};
use crate::doctor::tree::Tree;
use largesse_machine::Unread;
use largesse_machine::room::Mount;
use largesse_terminal::say::counted;
use largesse_terminal::size;

const POOLS: &str = "/sys/kernel/mm/hugepages";
const MOUNTS: &str = "/proc/self/mountinfo";
const NODES: &str = "/sys/devices/system/node";

pub(crate) fn findings(tree: &Tree, live: &Live) -> Vec<Finding> {
    let mut pools: Vec<(u64, String)> =
        tree.list(POOLS).into_iter().filter_map(|name| Some((kib(&name)?, name))).collect();
    if let Some(unread) = tree.unread(POOLS) {
        return vec![unreadable(&unread, live.trial("hugetlb"))];
    }
    if pools.is_empty() {
        return vec![
            Finding::new(Hugetlb, Status::Info, "hugetlb", "none")
                .why("this kernel has no hugetlb pools: --pages hugetlb is not granted"),
        ];
    }
    pools.sort_unstable();
    let mut findings: Vec<Finding> = pools
        .iter()
        .map(|(kib, name)| pool(*kib, PoolCounts::read(tree, POOLS, name), &by_node(tree, name)))
        .collect();
    let used = pools.iter().any(|(_, name)| PoolCounts::read(tree, POOLS, name).pages > 0);
    findings.push(match tree.unread(MOUNTS) {
        Some(unread) => Finding::unread(Hugetlb, "hugetlb-mount", &unread),
        None => mounted(&tree.read(MOUNTS).unwrap_or_default()),
    });
    if used {
        findings.extend(tree.number("/proc/sys/vm/hugetlb_shm_group").map(shared_by));
    }
    findings
}

/// Returns the finding about pools that cannot be read, from the `verdict` of a trial with pages of 2 MiB.
fn unreadable(unread: &Unread, verdict: Option<Verdict>) -> Finding {
    match verdict {
        Some(Verdict::Granted) => {
            Finding::new(Hugetlb, Status::Ok, "hugetlb", "given: a trial got a page of 2 MiB")
                .why(unread.to_string())
        }
        tried => {
            let trial = if tried.is_some() { "; a trial got no page of 2 MiB" } else { "" };
            let why = format!("{unread}{trial}: whether there is a pool for --pages hugetlb is not known");
            Finding::unread(Hugetlb, "hugetlb", unread).why(why)
        }
    }
}

/// Numbers of pages of a hugetlb pool, or of one node's part of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct PoolCounts {
    pages: u64,
    free: u64,
    reserved: u64,
    surplus: u64,
    /// Number of pages that the kernel may add on demand.
    on_demand: u64,
}

impl PoolCounts {
    fn read(tree: &Tree, directory: &str, name: &str) -> PoolCounts {
        let file = |file: &str| tree.number(&format!("{directory}/{name}/{file}_hugepages")).unwrap_or(0);
        PoolCounts {
            pages: file("nr"),
            free: file("free"),
            reserved: file("resv"),
            surplus: file("surplus"),
            on_demand: file("nr_overcommit"),
        }
    }

    /// Returns the number of pages that programs can still get.
    fn available(self) -> u64 {
        self.free.saturating_sub(self.reserved) + self.on_demand.saturating_sub(self.surplus)
    }
}

fn kib(name: &str) -> Option<u64> {
    name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()
}

fn by_node(tree: &Tree, name: &str) -> Vec<(u32, u64)> {
    let number = |node: &String| node.strip_prefix("node")?.parse::<u32>().ok();
    let mut nodes: Vec<u32> = tree.list(NODES).iter().filter_map(number).collect();
    nodes.sort_unstable();
    let pages = |node| PoolCounts::read(tree, &format!("{NODES}/node{node}/hugepages"), name).free;
    nodes.into_iter().map(|node| (node, pages(node))).collect()
}

fn pool(kib: u64, pool: PoolCounts, nodes: &[(u32, u64)]) -> Finding {
    let id = format!("hugetlb-{}", size(kib << 10).replace(' ', ""));
    let option = if kib == 1 << 20 { "--pages hugetlb-1g" } else { "--pages hugetlb" };
    if pool.pages == 0 && pool.on_demand == 0 {
        let empty = Finding::new(Hugetlb, Status::Info, id, "no pool");
        return match kib {
            2048 => empty
                .why(format!("only {option} needs one; other programs cannot use its pages"))
                .command("sudo largesse doctor --fix --hugetlb-pages 512   # 1 GiB"),
            1_048_576 => empty
                .why(format!("only {option} needs one; best reserved at boot"))
                .command("hugepagesz=1G hugepages=2   # on the kernel's command line"),
            _ => empty,
        };
    }
    let PoolCounts { pages, free, reserved, surplus, on_demand } = pool;
    let mut now = format!(
        "{} ({}), {free} free, {reserved} reserved",
        counted(pages, "page"),
        size(pages * (kib << 10))
    );
    if surplus + on_demand > 0 {
        now += &format!(", {surplus} of {on_demand} on demand");
    }
    if nodes.len() > 1 {
        let shares: Vec<String> = nodes.iter().map(|(node, free)| format!("node {node}: {free}")).collect();
        now += &format!("; free on {}", shares.join(", "));
    }
    if pool.available() == 0 {
        return Finding::new(Hugetlb, Status::Advice, id, now)
            .wanted("free pages, or no pool")
            .why(format!("{option} falls back to small pages until some are given back"))
            .command(
                "grep -l '^Private_Hugetlb: *[1-9]' /proc/[0-9]*/smaps   # shows which processes use them",
            );
    }
    Finding::new(Hugetlb, Status::Ok, id, now)
}

fn mounted(mounts: &str) -> Finding {
    let hugetlbfs = mounts.lines().filter_map(Mount::parse).filter(|mount| mount.kind == "hugetlbfs");
    let points: Vec<String> = hugetlbfs
        .map(|mount| {
            let page = mount.system_options.split(',').find_map(|option| option.strip_prefix("pagesize="));
            page.map_or_else(|| mount.point.to_owned(), |page| format!("{} ({page})", mount.point))
        })
        .collect();
    let now = if points.is_empty() { "not mounted".to_owned() } else { points.join(", ") };
    Finding::new(Hugetlb, Status::Info, "hugetlb-mount", now)
        .why("not needed: largesse maps its pages without one")
}

fn shared_by(group: u64) -> Finding {
    Finding::new(Hugetlb, Status::Info, "hugetlb-shm-group", format!("group {group}"))
        .why("may make System V segments of these pages; largesse makes none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: PoolCounts, want: Status) {
        assert_eq!(pool(2048, given, &[]).status, want);
    }

    #[test]
    fn available_pool_is_fine() {
        let some = PoolCounts { pages: 8, free: 8, ..PoolCounts::default() };
        check(some, Status::Ok);
        check(PoolCounts { reserved: 8, ..some }, Status::Advice);
        check(PoolCounts { free: 0, ..some }, Status::Advice);
        check(PoolCounts { free: 0, on_demand: 4, ..some }, Status::Ok);
        check(PoolCounts { free: 0, on_demand: 4, surplus: 4, ..some }, Status::Advice);
        check(PoolCounts { on_demand: 4, ..PoolCounts::default() }, Status::Ok);
        check(PoolCounts::default(), Status::Info);
    }

    #[test]
    fn single_page_is_singular() {
        let one = PoolCounts { pages: 1, free: 1, ..PoolCounts::default() };
        assert_eq!(pool(2048, one, &[]).now, "1 page (2 MiB), 1 free, 0 reserved");
    }

    #[test]
    fn several_nodes_show_their_shares() {
        let some = PoolCounts { pages: 8, free: 8, ..PoolCounts::default() };
        assert!(pool(2048, some, &[(0, 6), (2, 2)]).now.ends_with("free on node 0: 6, node 2: 2"));
        assert!(!pool(2048, some, &[(0, 8)]).now.contains("node"));
    }

    #[test]
    fn mounts_show_page_size() {
        let line = "40 22 0:30 / /dev/hugepages rw,relatime shared:5 - hugetlbfs hugetlbfs rw,pagesize=2M";
        assert_eq!(mounted(line).now, "/dev/hugepages (2M)");
        assert_eq!(mounted("").now, "not mounted");
    }
}
