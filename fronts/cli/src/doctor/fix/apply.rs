//! Performs the steps of a plan, or prints them.

use super::plan::ChangePlan;
use super::step::{ChangeStep, Owner};
use crate::doctor::checks::far::{self, DEVICE};
use crate::doctor::checks::limits::GROUP;
use crate::doctor::tree::Tree;
use largesse_terminal::say::{complain, counted, say};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

/// The way in which a plan is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Performs the steps.
    Act,
    /// Prints the steps (`--dry-run`).
    Say,
    /// Prints commands to type, for a user who is not root.
    Commands,
}

/// Applies the plan up to the first step that fails, and returns whether all steps succeeded.
pub(crate) fn apply(tree: &Tree, plan: &ChangePlan, how: How) -> bool {
    if how == How::Commands && !plan.steps.is_empty() {
        say!("# Not root: nothing was changed. These commands would do it.");
    }
    for step in &plan.steps {
        let (past, conditional, what) = step.words();
        match how {
            How::Say => say!("{conditional:<13} {what}"),
            How::Commands => say!("{}", step.command()),
            How::Act if tree.is_saved() && is_command(step) => {
                say!("not run       {what}   (a saved machine)")
            }
            How::Act => {
                if let Err(error) = take(tree, step) {
                    complain!("largesse doctor: {what}: {error}");
                    complain!("largesse doctor: stopped here; the steps above were done");
                    return false;
                }
                say!("{past:<13} {what}");
                short_pool(tree, step);
            }
        }
        if let (ChangeStep::Write { text, .. }, How::Act | How::Say) = (step, how) {
            text.lines().for_each(|line| say!("              | {line}"));
        }
    }
    for note in &plan.notes {
        say!("{}{note}", if how == How::Commands { "# " } else { "note          " });
    }
    if how == How::Say && !plan.steps.is_empty() {
        say!("Nothing was changed (--dry-run).");
    }
    true
}

/// Returns whether a step changes groups or a device, which is done by commands and not on a saved copy of a machine.
fn is_command(step: &ChangeStep) -> bool {
    matches!(step, ChangeStep::MakeGroup | ChangeStep::RemoveGroup | ChangeStep::Own { .. })
}

fn take(tree: &Tree, step: &ChangeStep) -> io::Result<()> {
    match step {
        ChangeStep::MakeGroup => run("groupadd", &["--system", GROUP]),
        ChangeStep::RemoveGroup => run("groupdel", &[GROUP]),
        ChangeStep::Write { path, text } => tree.replace(path, text),
        ChangeStep::Remove { path } => tree.remove(path),
        ChangeStep::RemoveDirectory { path } => match tree.remove_empty(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
        ChangeStep::Set { path, to, .. } => tree.set(path, to),
        ChangeStep::Own { group, mode } => {
            let number = match group {
                Owner::Number(number) => Some(*number),
                Owner::Ours => far::group(tree, GROUP).map(|group| group.number),
            };
            let number = number.ok_or_else(|| io::Error::other(format!("no group {GROUP} in /etc/group")))?;
            std::os::unix::fs::chown(tree.at(DEVICE), None, Some(number))?;
            fs::set_permissions(tree.at(DEVICE), fs::Permissions::from_mode(*mode))
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> io::Result<()> {
    let status = std::process::Command::new(program).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// Reports if the kernel has filled a hugetlb pool only in part, which it does without an error.
fn short_pool(tree: &Tree, step: &ChangeStep) {
    let ChangeStep::Set { path, to, .. } = step else { return };
    let (Some(got), Ok(asked)) = (tree.number(path), to.parse::<u64>()) else { return };
    if got < asked {
        say!(
            "note          the kernel found {got} of {}; memory is fragmented; a reboot makes more available",
            counted(asked, "page")
        );
    }
}
