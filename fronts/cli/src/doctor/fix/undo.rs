//! Plans `--undo`, which removes our files and restores the values recorded in them.

use super::own::{ALL, MADE_GROUP, OwnFile};
use super::plan::ChangePlan;
use super::step::{ChangeStep, Owner};
use crate::doctor::checks::far::{self, DEVICE};
use crate::doctor::checks::limits::GROUP;
use crate::doctor::checks::thp::chosen;
use crate::doctor::live::{Device, Live};
use crate::doctor::tree::Tree;

pub(crate) fn undo(tree: &Tree, live: &Live) -> ChangePlan {
    let mut plan = ChangePlan::default();
    let mut directories = Vec::new();
    let mut made_group = false;
    for path in ALL {
        let file = match OwnFile::read(tree, path) {
            Ok(Some(file)) => file,
            Ok(None) => continue,
            Err(_) => {
                plan.notes.push(format!("{path} was not written by largesse; it is left alone."));
                continue;
            }
        };
        for (what, was) in &file.was {
            if what == DEVICE {
                plan.steps.extend(live.device.and_then(|now| device(now, was)));
            } else {
                value(tree, &file, what, was, &mut plan);
            }
        }
        // The file is removed only after its recorded values are restored.
        plan.steps.push(ChangeStep::Remove { path });
        made_group |= file.made.iter().any(|made| made == MADE_GROUP);
        directories.extend(file.made.into_iter().filter(|made| made.starts_with("/etc")));
    }
    // Sorts the innermost directories first.
    directories.sort_by(|one, other| other.cmp(one));
    directories.dedup();
    plan.steps.extend(directories.into_iter().map(|path| ChangeStep::RemoveDirectory { path }));
    if made_group {
        match far::group(tree, GROUP) {
            Some(group) if group.members.is_empty() => plan.steps.push(ChangeStep::RemoveGroup),
            Some(group) => plan
                .notes
                .push(format!("Group {GROUP} has members and is kept: {}.", group.members.join(", "))),
            None => {}
        }
    }
    plan
}

/// Plans to restore the value `was` of the kernel file `path`, unless the value that we set was changed since.
fn value(tree: &Tree, file: &OwnFile, path: &str, was: &str, plan: &mut ChangePlan) {
    let Some(text) = tree.read(path) else { return };
    let now = chosen(&text);
    if now == was {
        return;
    }
    // The kernel may have filled a pool with fewer pages than requested.
    let no_more =
        |ours: &str| now.parse::<u64>().ok().zip(ours.parse().ok()).is_some_and(|(now, ours)| now <= ours);
    if file.value_of(path).is_some_and(|ours| now == ours || no_more(ours)) {
        plan.steps.push(ChangeStep::Set { path: path.to_owned(), from: now.to_owned(), to: was.to_owned() });
    } else {
        plan.notes.push(format!("{path} is {now}, which largesse did not set; it is left alone."));
    }
}

fn device(now: Device, was: &str) -> Option<ChangeStep> {
    let mut words = was.split(' ');
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let group = words.nth(1)?.parse().ok()?;
    let same = now.mode == mode && now.group == group;
    (!same).then_some(ChangeStep::Own { group: Owner::Number(group), mode })
}
