//! Far memory as it was asked for.

use largesse_agent::Name;
use largesse_pager::Local;
use std::path::PathBuf;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// How much may be here.
    pub(crate) local: Local,
    /// Where the rest is.
    pub(crate) store: Store,
    /// Bytes that move together; `None`: tuned.
    pub(crate) page_size: Option<usize>,
    /// The program's own static arrays too.
    pub(crate) static_data: bool,
    /// Fetch ahead of foreseen faults.
    pub(crate) prefetch: bool,
    /// Who serves faults.
    pub(crate) engine: Engine,
}

/// Who serves faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A thread of ours, in the best way that the user is allowed.
    Auto,
    /// A thread of ours, also for system calls on far memory.
    Events,
    /// A thread of ours; system calls on far memory are filtered. Every user may.
    UserMode,
    /// The thread that meets a far page; system calls are filtered.
    Thread,
}

/// A kind of store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// A file of this name, which is taken away at once.
    File(PathBuf),
    /// Whatever the agent of this name keeps pages in.
    Agent(Name),
}

impl Store {
    /// What [`Store::parse`] takes, for people.
    pub(crate) const ACCEPTED: &str = "file:PATH, agent:NAME";

    /// `file:PATH` or `agent:NAME`, as the launcher says it.
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
    fn stores_have_a_kind_and_a_place() {
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
