//! Checks the kernel's features, the cores, the nodes, and inherited preloaded libraries.

use crate::doctor::finding::Subject::Machine as About;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Live, Verdict};
use crate::doctor::machine::{MachineFacts, WITH_MEMORY};
use crate::doctor::tree::Tree;

/// A feature of newer kernels, and the consequence of its absence.
struct Feature {
    name: &'static str,
    trial: &'static str,
    since: (u32, u32),
    /// The file that the trial opens, if any.
    file: Option<&'static str>,
    without: &'static str,
}

const FEATURES: &[Feature] = &[
    Feature {
        name: "MADV_POPULATE_WRITE",
        trial: "populate",
        since: (5, 14),
        file: None,
        without: "pages are filled ahead of need by touching them",
    },
    Feature {
        name: "MADV_COLLAPSE",
        trial: "collapse",
        since: (6, 1),
        file: None,
        without: "the kernel joins small pages later",
    },
    Feature {
        name: "PAGEMAP_SCAN",
        trial: "pagemap_scan",
        since: (6, 7),
        file: Some("/proc/self/pagemap"),
        without: "bytes on large pages are estimated per mapping, marked ~",
    },
];

const OLDEST: (u32, u32) = (5, 10);

pub(crate) fn findings(tree: &Tree, live: &Live, machine: &MachineFacts) -> Vec<Finding> {
    let mut findings = vec![kernel(tree, live, machine), processors(machine.processors)];
    let known = || Finding::new(About, Status::Ok, "nodes", machine.nodes.unwrap_or(1).to_string());
    let nodes = tree.unread(WITH_MEMORY).map(|unread| Finding::unread(About, "nodes", &unread));
    findings.push(nodes.unwrap_or_else(known));
    findings.extend(live.preload.as_deref().map(preload));
    findings
}

fn kernel(tree: &Tree, live: &Live, machine: &MachineFacts) -> Finding {
    let finding = |status, now| Finding::new(About, status, "kernel", now);
    if machine.kernel.is_empty() {
        return finding(Status::Info, "not known".to_owned());
    }
    if machine.version < OLDEST {
        return finding(Status::Problem, machine.kernel.clone())
            .wanted("5.10 or later")
            .why("older kernels are not supported and not tested")
            .command("sudo apt full-upgrade && sudo reboot");
    }
    let missing = FEATURES.iter().filter(|feature| !has(feature, live, machine));
    let unread = |feature: &&Feature| feature.file.and_then(|file| tree.unread(file));
    let (not_tried, missing): (Vec<&Feature>, Vec<&Feature>) = missing.partition(|it| unread(it).is_some());
    if let ([feature, ..], []) = (&not_tried[..], &missing[..]) {
        let why = unread(feature).map(|unread| unread.to_string()).unwrap_or_default();
        return finding(Status::Info, format!("{}; {} was not tried", machine.kernel, feature.name))
            .why(format!("{why}. Without it {}", feature.without));
    }
    if missing.is_empty() {
        return finding(Status::Ok, format!("{}, every feature in use", machine.kernel));
    }
    let names: Vec<&str> = missing.iter().map(|feature| feature.name).collect();
    let without: Vec<&str> = missing.iter().map(|feature| feature.without).collect();
    finding(Status::Info, format!("{}, without {}", machine.kernel, names.join(", "))).why(without.join("; "))
}

/// Returns whether the kernel has a feature: what its trial showed decides, or the kernel's version if it has no trial.
fn has(feature: &Feature, live: &Live, machine: &MachineFacts) -> bool {
    live.trial(feature.trial).map_or(machine.version >= feature.since, |verdict| verdict == Verdict::Granted)
}

fn processors(count: Option<usize>) -> Finding {
    let finding = |status, now| Finding::new(About, status, "processors", now);
    match count {
        None => finding(Status::Info, "not known".to_owned()),
        Some(one @ ..=1) => finding(Status::Info, one.to_string())
            .why("pages are not filled ahead of need, which takes a second processor"),
        Some(more) => finding(Status::Ok, more.to_string()),
    }
}

/// Parts of file names of libraries that replace `malloc`.
const ALLOCATORS: [&str; 8] =
    ["jemalloc", "tcmalloc", "mimalloc", "hoard", "snmalloc", "libscudo", "libhugetlbfs", "libasan"];

fn preload(value: &str) -> Finding {
    let libraries = value.split([':', ' ']).filter(|library| !library.is_empty());
    let file = |library: &str| library.rsplit('/').next().unwrap_or_default().to_owned();
    let other = libraries.map(file).find(|name| ALLOCATORS.iter().any(|allocator| name.contains(allocator)));
    let Some(other) = other else {
        return Finding::new(About, Status::Info, "preload", value);
    };
    Finding::new(About, Status::Advice, "preload", value)
        .wanted("one allocator")
        .why(format!("{other} serves malloc, so that largesse serves no large block"))
        .command("unset LD_PRELOAD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_allocator_gives_advice() {
        for (value, want) in [
            ("/usr/lib/libjemalloc.so.2", Status::Advice),
            ("/a/libfoo.so /usr/lib/libtcmalloc_minimal.so.4", Status::Advice),
            ("/home/tcmalloc/libfoo.so", Status::Info),
        ] {
            assert_eq!(preload(value).status, want, "{value}");
        }
    }

    #[test]
    fn single_processor_is_information() {
        assert_eq!(processors(Some(1)).status, Status::Info);
        assert_eq!(processors(Some(2)).status, Status::Ok);
    }

    #[test]
    fn trials_override_kernel_version() {
        let feature = &FEATURES[0];
        let tree = crate::doctor::tree::Tree::new(std::path::Path::new("/nowhere"));
        let machine = MachineFacts { version: (6, 18), ..MachineFacts::read(&tree, &Live::default()) };
        let mut live = Live::default();
        assert!(has(feature, &live, &machine));
        live.trials.insert("populate".to_owned(), Verdict::Refused(libc::EPERM));
        assert!(!has(feature, &live, &machine));
    }
}
