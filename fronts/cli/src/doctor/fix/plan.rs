//! Plans `--fix`, which changes only settings that need it, for a group rather than for every user.

use super::own::{Foreign, LIMITS, MADE_GROUP, OwnFile, SYSCTL, TMPFILES, UDEV};
use super::step::{ChangeStep, Owner};
use crate::doctor::checks::far::{self, DEVICE, FOR_ALL};
use crate::doctor::checks::limits::{GROUP, PROCESS, lockable, soft};
use crate::doctor::checks::thp::{self, Switches, chosen};
use crate::doctor::live::Live;
use crate::doctor::machine::{MachineFacts, kib_field};
use crate::doctor::tree::Tree;
use largesse_machine::Unread;
use largesse_terminal::say::counted;
use largesse_terminal::size;

const POOL: &str = "/proc/sys/vm/nr_hugepages";

/// The options of `--fix`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FixOptions {
    pub(crate) hugetlb_pages: Option<u64>,
    /// Whether settings for every user are accepted (`--yes`).
    pub(crate) for_all: bool,
}

/// The reason why nothing is changed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error(
        "{} was not written by largesse and is not overwritten; move it away first. Nothing was changed",
        .0.path
    )]
    NotOurs(Foreign),
    /// The requested pool of this number of bytes is too large for the machine, whose memory is the second number of
    /// bytes.
    #[error(
        "--hugetlb-pages asks for {} of the machine's {}; at most three quarters are accepted. Nothing was changed",
        size(*.0),
        size(*.1)
    )]
    PoolTooLarge(u64, u64),
    #[error("--hugetlb-pages: this kernel has no hugetlb pools. Nothing was changed")]
    NoPools,
    /// The file that describes the pool cannot be read.
    #[error("--hugetlb-pages: {0}. Nothing was changed")]
    Unread(Unread),
}

/// A plan of changes: the steps in order, and notes to print after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangePlan {
    pub(crate) steps: Vec<ChangeStep>,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn plan(
    tree: &Tree,
    live: &Live,
    machine: &MachineFacts,
    options: FixOptions,
) -> Result<ChangePlan, Refusal> {
    if machine.read_only {
        let note = "/sys is read-only: this is a container. Run `sudo largesse doctor --fix` on its host.";
        return Ok(ChangePlan { steps: Vec::new(), notes: vec![note.to_owned()] });
    }
    let mut draft = Draft { tree, files: Vec::new(), after: Vec::new(), notes: Vec::new(), group: false };
    draft.unread();
    draft.transparent(machine)?;
    draft.pool(machine, options)?;
    draft.lockable(machine)?;
    draft.userfaultfd(live, options)?;
    Ok(draft.finish())
}

/// A plan in preparation: files to write, and the steps after them.
struct Draft<'a> {
    tree: &'a Tree,
    files: Vec<(&'static str, OwnFile)>,
    after: Vec<ChangeStep>,
    notes: Vec<String>,
    /// Whether a step needs the group `largesse`.
    group: bool,
}

impl Draft<'_> {
    /// Adds a note for each setting that cannot be read and so is not changed.
    fn unread(&mut self) {
        for file in [format!("{}/enabled", thp::DIRECTORY), PROCESS.to_owned()] {
            let unread = self.tree.unread(&file);
            self.notes.extend(unread.map(|unread| format!("{unread}: this setting is not checked.")));
        }
    }

    fn transparent(&mut self, machine: &MachineFacts) -> Result<(), Refusal> {
        let Some(enabled) = self.tree.read(&format!("{}/enabled", thp::DIRECTORY)) else { return Ok(()) };
        let switches = Switches::read(self.tree, &enabled, machine.transparent_size);
        let mut off = false;
        if switches.effective() == "never" {
            off = true;
            if switches.all == "never" {
                self.at_boot(&format!("{}/enabled", thp::DIRECTORY), "never", "madvise")?;
            }
            if switches.own.as_deref() == Some("never") {
                self.at_boot(&switches.own_path, "never", "inherit")?;
            }
        }
        let defrag = format!("{}/defrag", thp::DIRECTORY);
        if self.tree.read(&defrag).is_some_and(|text| chosen(&text) == "never") {
            off = true;
            self.at_boot(&defrag, "never", "madvise")?;
        }
        if off && !self.tree.exists("/run/systemd/system") {
            self.notes.push("No systemd here: for the next boot put transparent_hugepage=madvise on the kernel's command line.".to_owned());
        }
        Ok(())
    }

    /// Sets a value in sysfs now and, by systemd-tmpfiles, at every boot.
    fn at_boot(&mut self, path: &str, from: &str, to: &str) -> Result<(), Refusal> {
        let file = self.file(TMPFILES)?;
        file.remember(path, from);
        file.set(&format!("w {path} - - - - {to}"));
        self.after.push(ChangeStep::Set { path: path.to_owned(), from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    /// Sets a value in `/proc/sys` now and at every boot.
    fn sysctl(&mut self, path: &str, from: u64, to: u64) -> Result<(), Refusal> {
        let name = path.trim_start_matches("/proc/sys/").replace('/', ".");
        let file = self.file(SYSCTL)?;
        file.remember(path, &from.to_string());
        file.set(&format!("{name} = {to}"));
        self.after.push(ChangeStep::Set {
            path: path.to_owned(),
            from: from.to_string(),
            to: to.to_string(),
        });
        Ok(())
    }

    fn pool(&mut self, machine: &MachineFacts, options: FixOptions) -> Result<(), Refusal> {
        let Some(pages) = options.hugetlb_pages else { return Ok(()) };
        if let Some(unread) = ["/proc/meminfo", POOL].iter().find_map(|file| self.tree.unread(file)) {
            return Err(Refusal::Unread(unread));
        }
        let meminfo = self.tree.read("/proc/meminfo").unwrap_or_default();
        let page = kib_field(&meminfo, "Hugepagesize").ok_or(Refusal::NoPools)?;
        let now = self.tree.number(POOL).ok_or(Refusal::NoPools)?;
        let bytes = pages.saturating_mul(page);
        if bytes > machine.memory / 4 * 3 {
            return Err(Refusal::PoolTooLarge(bytes, machine.memory));
        }
        let ours = OwnFile::read(self.tree, SYSCTL).map_err(Refusal::NotOurs)?;
        let is_ours = ours.is_some_and(|file| file.value_of(POOL).is_some());
        if now > pages && !is_ours {
            self.notes
                .push(format!("The pool has {} already; it is not made smaller.", counted(now, "page")));
        } else if now != pages {
            self.sysctl(POOL, now, pages)?;
            self.notes
                .push(format!("{} of memory is reserved for programs under --pages hugetlb.", size(bytes)));
        }
        Ok(())
    }

    fn lockable(&mut self, machine: &MachineFacts) -> Result<(), Refusal> {
        let limits = self.tree.read(PROCESS).unwrap_or_default();
        let wanted = lockable(machine.memory);
        let Some(now) = soft(&limits, "Max locked memory") else { return Ok(()) };
        let line = format!("@{GROUP} - memlock {}", wanted >> 10);
        let ours = OwnFile::read(self.tree, LIMITS).map_err(Refusal::NotOurs);
        if now >= wanted
            || wanted == 0
            || ours.as_ref().is_ok_and(|file| file.as_ref().is_some_and(|file| file.has(&line)))
        {
            return Ok(());
        }
        self.group = true;
        self.file(LIMITS)?.set(&line);
        Ok(())
    }

    fn userfaultfd(&mut self, live: &Live, options: FixOptions) -> Result<(), Refusal> {
        if let Some(device) = live.device {
            let ours = far::group(self.tree, GROUP).map(|group| group.number);
            if options.for_all {
                self.notes.push(format!(
                    "{DEVICE} exists: a group suffices, and no setting for every user is made."
                ));
            }
            if far::is_open_to(device, ours) {
                return Ok(());
            }
            self.group = true;
            let was = format!("{:04o} {} {}", device.mode, device.user, device.group);
            let file = self.file(UDEV)?;
            file.remember(DEVICE, &was);
            file.set(&format!("KERNEL==\"userfaultfd\", GROUP=\"{GROUP}\", MODE=\"{:04o}\"", far::MODE));
            self.after.push(ChangeStep::Own { group: Owner::Ours, mode: far::MODE });
            if !self.tree.exists("/run/udev") {
                self.notes
                    .push(format!("No udev here: {DEVICE} is for root only again after the next boot."));
            }
            return Ok(());
        }
        match self.tree.number(FOR_ALL) {
            Some(0) if options.for_all => self.sysctl(FOR_ALL, 0, 1),
            Some(0) => {
                self.notes.push(format!("No {DEVICE}: far memory would need vm.unprivileged_userfaultfd=1 for every user, which helps attackers of the kernel too; not done without --yes."));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns our file in its planned state, which begins as its present state.
    fn file(&mut self, path: &'static str) -> Result<&mut OwnFile, Refusal> {
        let known = self.files.iter().position(|(known, _)| *known == path);
        let index = match known {
            Some(index) => index,
            None => {
                let own = OwnFile::read(self.tree, path).map_err(Refusal::NotOurs)?;
                self.files.push((path, own.unwrap_or_default()));
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[index].1)
    }

    fn finish(mut self) -> ChangePlan {
        let mut steps = Vec::new();
        let make_group = self.group && far::group(self.tree, GROUP).is_none();
        if make_group {
            steps.push(ChangeStep::MakeGroup);
        }
        for (path, file) in &mut self.files {
            for directory in missing(self.tree, path) {
                file.remember_made(&directory);
            }
            if make_group && [LIMITS, UDEV].contains(path) {
                file.remember_made(MADE_GROUP);
            }
            let text = file.text();
            if self.tree.read(path).as_deref() != Some(text.trim_end()) {
                steps.push(ChangeStep::Write { path, text });
            }
        }
        steps.append(&mut self.after);
        if self.group {
            self.notes.push(format!(
                "To let a user lock memory and use far memory: sudo usermod -aG {GROUP} USER, then log in again."
            ));
        }
        ChangePlan { steps, notes: self.notes }
    }
}

/// Returns the missing directories above a file, the outermost first.
fn missing(tree: &Tree, path: &str) -> Vec<String> {
    let ends = path.match_indices('/').skip(1).map(|(end, _)| &path[..end]);
    ends.filter(|directory| !tree.exists(directory)).map(str::to_owned).collect()
}
