//! Defines the settings of far memory, as every front hands them over.

use largesse_agent::Name;
use largesse_settings::{Amount, FaultEngine, StoreName};
use std::ffi::OsString;
use std::path::PathBuf;

/// Configures far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarConfig {
    /// Bound on resident far memory, in bytes or per cent.
    pub local: Amount,
    /// Store of the pages that are not resident.
    pub store: Store,
    /// Size of a transfer unit in bytes; `None`: chosen at run time by the tuner.
    pub page_size: Option<usize>,
    /// Whether pages are filled before they fault.
    pub prefetch: bool,
    /// How faults are delivered and handled.
    pub engine: FaultEngine,
}

/// Selects the store of far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// Pages are stored in a file of this name, which is unlinked at once.
    File(PathBuf),
    /// Pages are stored by the agent of this name.
    Agent(Name),
}

impl Store {
    /// Messages list these forms, which [`Store::parse`] accepts.
    pub const ACCEPTED: &str = "file:PATH, agent:NAME";

    /// Parses `file:PATH` or `agent:NAME`; returns `None` for other texts, since a process reaches other stores only
    /// through an agent.
    #[must_use]
    pub fn parse(text: &str) -> Option<Store> {
        match StoreName::parse(text)? {
            StoreName::File(path) => Some(Store::File(path.into())),
            StoreName::Agent(name) => Name::parse(name).map(Store::Agent),
            StoreName::Memory(_) | StoreName::Redis | StoreName::Mpi(_) => None,
        }
    }
}

/// Returns the file that is the store if the user names none: in the folder `temporary` (`$TMPDIR`), or else in
/// `/var/tmp`, which is meant for large files.
#[must_use]
pub fn default_file(temporary: Option<OsString>) -> PathBuf {
    let folder = temporary.filter(|it| !it.is_empty());
    PathBuf::from(folder.unwrap_or_else(|| "/var/tmp".into())).join("largesse.far")
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

    #[test]
    fn empty_folder_counts_as_none() {
        assert_eq!(default_file(Some("/scratch".into())), PathBuf::from("/scratch/largesse.far"));
        for none in [None, Some(OsString::new())] {
            assert_eq!(default_file(none), PathBuf::from("/var/tmp/largesse.far"));
        }
    }
}
