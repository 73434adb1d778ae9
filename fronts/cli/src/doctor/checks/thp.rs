//! Checks the settings of transparent huge pages, and the result of a trial.

use crate::doctor::finding::Subject::Transparent;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Live, Verdict};
use crate::doctor::machine::MachineFacts;
use crate::doctor::tree::Tree;
use largesse_terminal::size;

pub(crate) const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

pub(crate) fn findings(tree: &Tree, live: &Live, machine: &MachineFacts) -> Vec<Finding> {
    let Some(enabled) = tree.read(&format!("{DIRECTORY}/enabled")) else {
        let size = machine.transparent_size;
        let seen = live.trial("thp").map_or_else(absent, |verdict| unreadable(tree, verdict, size));
        return std::iter::once(seen).chain(disabled(live.thp_disable)).collect();
    };
    let switches = Switches::read(tree, &enabled, machine.transparent_size);
    let mut findings = vec![mode(&switches)];
    if let Some(text) = tree.read(&format!("{DIRECTORY}/defrag")) {
        findings.push(defrag(chosen(&text)));
    }
    findings.extend(disabled(live.thp_disable));
    if switches.effective() != "never" && live.thp_disable != Some(1) {
        findings.extend(live.trial("thp").map(|verdict| trial(verdict, machine.transparent_size)));
    }
    if let Some(limit) = tree.number(&format!("{DIRECTORY}/khugepaged/max_ptes_none")) {
        findings.push(khugepaged(limit));
    }
    findings.extend(middle_sizes(tree, &enabled, machine.transparent_size));
    findings
}

/// The settings of transparent huge pages: `all` for all sizes and, since Linux 6.8, `own` for the ordinary huge page.
pub(crate) struct Switches {
    pub(crate) all: String,
    pub(crate) own: Option<String>,
    /// The file with the setting `own`.
    pub(crate) own_path: String,
}

impl Switches {
    pub(crate) fn read(tree: &Tree, enabled: &str, transparent_size: Option<u64>) -> Switches {
        let kib = transparent_size.unwrap_or(2 << 20) >> 10;
        let own_path = format!("{DIRECTORY}/hugepages-{kib}kB/enabled");
        let own = tree.read(&own_path).map(|text| chosen(&text).to_owned());
        Switches { all: chosen(enabled).to_owned(), own, own_path }
    }

    /// Returns the setting in force for an ordinary huge page.
    pub(crate) fn effective(&self) -> &str {
        match self.own.as_deref() {
            None | Some("inherit") => &self.all,
            Some(own) => own,
        }
    }
}

/// Returns the word in brackets, such as `madvise` in `always [madvise] never`.
pub(crate) fn chosen(choices: &str) -> &str {
    let inside = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(choices, |(word, _)| word)
}

/// Returns the finding about settings that cannot be read, as under a hidden `/sys`, from the `verdict` of a trial.
fn unreadable(tree: &Tree, verdict: Verdict, transparent_size: Option<u64>) -> Finding {
    let unread = tree.unread(&format!("{DIRECTORY}/enabled"));
    let unread = unread.map_or_else(String::new, |unread| format!("{unread}; "));
    let finding = |status, now: String| {
        Finding::new(Transparent, status, "thp", now).why(format!("{unread}a trial gave this result"))
    };
    match verdict {
        Verdict::Granted => finding(
            Status::Ok,
            format!("given: asked for {0}, got {0}", size(transparent_size.unwrap_or(2 << 20))),
        ),
        // A kernel without huge pages does not know the advice.
        Verdict::Refused(libc::EINVAL | libc::ENOSYS) => absent(),
        _ => finding(Status::Advice, "not known: a trial got small pages".into())
            .wanted("a readable /sys, or a free large page"),
    }
}

fn absent() -> Finding {
    Finding::new(Transparent, Status::Problem, "thp", "none")
        .wanted("a kernel built with CONFIG_TRANSPARENT_HUGEPAGE")
        .why("blocks get small pages only; a pool of hugetlb pages (--pages hugetlb) still works")
        .command("sudo largesse doctor --fix --hugetlb-pages 512")
}

fn mode(switches: &Switches) -> Finding {
    let now = switches.effective();
    let finding = |status| Finding::new(Transparent, status, "thp", now);
    match now {
        "madvise" => finding(Status::Ok),
        "always" => finding(Status::Ok).why("every program gets them, even without asking"),
        _ => {
            let path = if switches.own.as_deref() == Some("never") && switches.all != "never" {
                switches.own_path.clone()
            } else {
                format!("{DIRECTORY}/enabled")
            };
            let word = if path == switches.own_path { "inherit" } else { "madvise" };
            finding(Status::Problem)
                .wanted("madvise")
                .why("no block gets a large page; madvise gives them only to programs that ask")
                .command(format!(
                    "echo {word} | sudo tee {path}   # at every boot: sudo largesse doctor --fix"
                ))
        }
    }
}

fn defrag(now: &str) -> Finding {
    let finding = |status| Finding::new(Transparent, status, "thp-defrag", now);
    let command =
        format!("echo madvise | sudo tee {DIRECTORY}/defrag   # at every boot: sudo largesse doctor --fix");
    match now {
        "madvise" | "defer+madvise" => finding(Status::Ok),
        "always" => {
            finding(Status::Info).why("programs that did not ask for large pages may stall for them too")
        }
        "defer" => finding(Status::Info).why("a block keeps small pages at first when memory is fragmented"),
        _ => finding(Status::Advice)
            .wanted("madvise")
            .why("if no large page is free, the kernel makes none, and the block stays on small pages")
            .command(command),
    }
}

/// Checks the value of `PR_GET_THP_DISABLE`; `PR_THP_DISABLE_EXCEPT_ADVISED` (Linux 6.18) sets its second bit.
fn disabled(value: Option<u32>) -> Option<Finding> {
    let finding = |status, now| Finding::new(Transparent, status, "thp-prctl", now);
    Some(match value? {
        0 => finding(Status::Ok, "not disabled"),
        3 => finding(Status::Ok, "disabled except where asked for").why("largesse asks"),
        _ => finding(Status::Problem, "disabled for this process and its children")
            .wanted("not disabled")
            .why("a parent called prctl(PR_SET_THP_DISABLE); no file of the machine overrules it")
            .command("start from another parent: look for THPDisable or PR_SET_THP_DISABLE in the service or job manager"),
    })
}

fn trial(verdict: Verdict, transparent_size: Option<u64>) -> Finding {
    let page = size(transparent_size.unwrap_or(2 << 20));
    let finding = |status, now| Finding::new(Transparent, status, "thp-trial", now);
    match verdict {
        Verdict::Granted => finding(Status::Ok, format!("asked for {page}, got {page}")),
        _ => finding(Status::Advice, format!("asked for {page}, got small pages"))
            .wanted(format!("a free page of {page}"))
            .why("memory is full or fragmented: no large page was free at this moment")
            .command("cat /proc/buddyinfo   # free blocks by size, the largest on the right"),
    }
}

fn khugepaged(limit: u64) -> Finding {
    Finding::new(Transparent, Status::Info, "khugepaged", format!("max_ptes_none {limit}"))
        .why("number of unused small pages that the kernel may add to make a large page")
}

/// Checks the sizes between a small and a huge page (Linux 6.8), for `--pages 64k`.
fn middle_sizes(tree: &Tree, enabled: &str, transparent_size: Option<u64>) -> Option<Finding> {
    let sizes = tree.list(DIRECTORY);
    let mut sizes: Vec<u64> = sizes
        .iter()
        .filter_map(|name| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok())
        .filter(|kib| Some(kib << 10) != transparent_size)
        .collect();
    sizes.sort_unstable();
    // Sizes for shared memory only have no such file.
    let mode = |kib: u64| {
        let text = tree.read(&format!("{DIRECTORY}/hugepages-{kib}kB/enabled"))?;
        let own = chosen(&text);
        Some((kib, if own == "inherit" { chosen(enabled) } else { own }.to_owned()))
    };
    let modes: Vec<(u64, String)> = sizes.into_iter().filter_map(mode).collect();
    middle(&modes)
}

fn middle(modes: &[(u64, String)]) -> Option<Finding> {
    let (_, of_64k) = modes.iter().find(|(kib, _)| *kib == 64)?;
    let on: Vec<String> =
        modes.iter().filter(|(_, mode)| mode != "never").map(|(kib, _)| size(kib << 10)).collect();
    let now = if on.is_empty() { "none between a small and a large page".to_owned() } else { on.join(", ") };
    if of_64k != "never" {
        return Some(Finding::new(Transparent, Status::Ok, "thp-sizes", now));
    }
    Some(
        Finding::new(Transparent, Status::Info, "thp-sizes", now)
            .why("only --pages 64k needs one")
            .command(format!("echo madvise | sudo tee {DIRECTORY}/hugepages-64kB/enabled")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(all: &str, own: Option<&str>, want: Status) {
        let own = own.map(str::to_owned);
        let switches = Switches { all: all.to_owned(), own, own_path: "/own".to_owned() };
        assert_eq!(mode(&switches).status, want);
    }

    #[test]
    fn own_size_overrides_all_sizes() {
        check("madvise", None, Status::Ok);
        check("always", None, Status::Ok);
        check("never", None, Status::Problem);
        check("madvise", Some("inherit"), Status::Ok);
        check("never", Some("inherit"), Status::Problem);
        check("madvise", Some("never"), Status::Problem);
        check("never", Some("madvise"), Status::Ok);
    }

    #[test]
    fn command_sets_disabled_size() {
        let own = Some("never".to_owned());
        let command = mode(&Switches { all: "madvise".to_owned(), own, own_path: "/own".to_owned() }).command;
        assert!(command.unwrap().starts_with("echo inherit | sudo tee /own"));
    }

    #[test]
    fn disabled_process_is_problem() {
        for (value, want) in [(0, Status::Ok), (1, Status::Problem), (3, Status::Ok)] {
            assert_eq!(disabled(Some(value)).unwrap().status, want, "{value}");
        }
    }

    #[test]
    fn choice_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("always defer defer+madvise madvise [never]"), "never");
        assert_eq!(chosen("odd"), "odd");
    }

    #[test]
    fn middle_sizes_matter_for_64k() {
        let modes = |of_64k: &str| [(32, "never".to_owned()), (64, of_64k.to_owned())];
        assert_eq!(middle(&modes("never")).unwrap().status, Status::Info);
        let on = middle(&modes("always")).unwrap();
        assert_eq!((on.status, &*on.now), (Status::Ok, "64 KiB"));
        assert_eq!(middle(&[]), None);
    }
}
