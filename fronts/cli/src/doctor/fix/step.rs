//! A step of a plan, its description, and the equivalent command.

use crate::doctor::checks::far::DEVICE;
use crate::doctor::checks::limits::GROUP;

/// A change of the machine; steps without an effect are not planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeStep {
    MakeGroup,
    RemoveGroup,
    Write {
        path: &'static str,
        text: String,
    },
    Remove {
        path: &'static str,
    },
    /// Removes a directory if it is empty.
    RemoveDirectory {
        path: String,
    },
    /// Writes the value `to` to a kernel file, whose present value is `from`.
    Set {
        path: String,
        from: String,
        to: String,
    },
    /// Sets the group and the mode of `/dev/userfaultfd`.
    Own {
        group: Owner,
        mode: u32,
    },
}

/// The group that a step gives to `/dev/userfaultfd`: the group `largesse`, or the group with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Ours,
    Number(u32),
}

impl ChangeStep {
    /// Returns the words that describe the step: the verb in the past tense (`wrote`), the verb in the conditional
    /// (`would write`), and the object.
    pub(crate) fn words(&self) -> (&'static str, &'static str, String) {
        match self {
            ChangeStep::MakeGroup => ("ran", "would run", format!("groupadd --system {GROUP}")),
            ChangeStep::RemoveGroup => ("ran", "would run", format!("groupdel {GROUP}")),
            ChangeStep::Write { path, .. } => ("wrote", "would write", (*path).to_owned()),
            ChangeStep::Remove { path } => ("removed", "would remove", (*path).to_owned()),
            ChangeStep::RemoveDirectory { path } => {
                ("removed", "would remove", format!("{path} (if it is empty)"))
            }
            ChangeStep::Set { path, from, to } => ("set", "would set", format!("{path}: {from} -> {to}")),
            ChangeStep::Own { group, mode } => {
                ("set", "would set", format!("{DEVICE}: group {}, mode {mode:04o}", group.name()))
            }
        }
    }

    /// Returns the equivalent shell command.
    pub(crate) fn command(&self) -> String {
        match self {
            ChangeStep::MakeGroup => format!("sudo groupadd --system {GROUP}"),
            ChangeStep::RemoveGroup => format!("sudo groupdel {GROUP}"),
            ChangeStep::Write { path, text } => {
                let directory = path.rsplit_once('/').map_or("/", |(directory, _)| directory);
                format!("sudo mkdir -p {directory} && sudo tee {path} >/dev/null <<'EOF'\n{text}EOF")
            }
            ChangeStep::Remove { path } => format!("sudo rm {path}"),
            ChangeStep::RemoveDirectory { path } => format!("sudo rmdir --ignore-fail-on-non-empty {path}"),
            ChangeStep::Set { path, to, .. } => format!("echo {to} | sudo tee {path}"),
            ChangeStep::Own { group, mode } => {
                format!("sudo chgrp {} {DEVICE} && sudo chmod {mode:04o} {DEVICE}", group.name())
            }
        }
    }
}

impl Owner {
    fn name(self) -> String {
        match self {
            Owner::Ours => GROUP.to_owned(),
            Owner::Number(number) => number.to_string(),
        }
    }
}
