//! Defines the settings of far memory.

use largesse_agent::Name;
use largesse_pager::Local;
use std::path::PathBuf;

/// Configures far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FarConfig {
    /// Bound on resident far memory, in bytes or per cent.
    pub(crate) local: Local,
    /// Store of the pages that are not resident.
    pub(crate) store: Store,
    /// Size of a transfer unit in bytes; `None`: chosen at run time by the tuner.
    pub(crate) page_size: Option<usize>,
    /// Whether the program's static arrays are far memory, too.
    pub(crate) static_data: bool,
    /// Whether pages are filled before they fault.
    pub(crate) prefetch: bool,
    /// How faults are delivered and handled.
    pub(crate) engine: Engine,
}

/// How faults are delivered and handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Userfaultfd delivers faults in the best mode that this user may open.
    Auto,
    /// Userfaultfd delivers faults, also those in system calls.
    Events,
    /// Userfaultfd delivers faults in user mode, open to every user; a filter prepares far memory for system calls.
    UserMode,
    /// SIGBUS delivers faults to the faulting thread; a filter prepares far memory for system calls.
    Thread,
}

/// Selects the store of far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// Pages are stored in a file of this name, which is unlinked at once.
    File(PathBuf),
    /// Pages are stored by the agent of this name.
    Agent(Name),
}

impl Store {
    /// Messages list these forms, which [`Store::parse`] accepts.
    pub(crate) const ACCEPTED: &str = "file:PATH, agent:NAME";

    /// Parses `file:PATH` or `agent:NAME`; returns `None` for other texts.
    pub(crate) fn parse(text: &str) -> Option<Store> {
        match text.split_once(':')? {
            ("file", path) if !path.is_empty() => Some(Store::File(path.into())),
            ("agent", name) => Name::parse(name).map(Store::Agent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_need_kind_and_name() {
        assert_eq!(Store::parse("file:/scratch/a"), Some(Store::File("/scratch/a".into())));
        let name = Name::new().unwrap();
        for name in [name.to_string(), format!("/run/user/1000/largesse-{name}")] {
            let want = Store::Agent(Name::parse(&name).unwrap());
            assert_eq!(Store::parse(&format!("agent:{name}")), Some(want));
        }
        for wrong in
            ["", "file:", "file", "agent", "agent:5", "agent:/tmp", "memory:", "ftp:/a", "/scratch/a"]
        {
            assert_eq!(Store::parse(wrong), None, "{wrong}");
        }
    }
}
