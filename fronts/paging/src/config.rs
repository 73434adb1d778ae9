//! The settings of far memory, as every front passes them.

use largesse_agent::Name;
use largesse_settings::{Amount, FaultEngine, StoreName};
use std::ffi::OsString;
use std::path::PathBuf;

/// The settings of far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarConfig {
    /// Upper bound of resident far memory, in bytes or per cent of all far memory in use.
    pub local: Amount,
    /// Store for the pages that are not resident.
    pub store: Store,
    /// Size of a transfer unit in bytes; `None` lets the tuner choose it at run time.
    pub page_size: Option<usize>,
    /// Whether pages are prefetched: filled before the program touches them.
    pub prefetch: bool,
    /// How faults are delivered and handled.
    pub engine: FaultEngine,
}

/// The store of far memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// Pages are stored in a file at this path, which is unlinked at once.
    File(PathBuf),
    /// Pages are stored by the agent of this name.
    Agent(Name),
}

impl Store {
    /// The forms that [`Store::parse`] accepts, as messages list them.
    pub const ACCEPTED: &str = "file:PATH, agent:NAME";

    /// Parses `file:PATH` or `agent:NAME`. Returns `None` for other texts, because a process reaches all other stores
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

/// Returns the path of the file that is the store if the user names none: in the folder `temporary` (`$TMPDIR`) if it
/// is set, otherwise in `/var/tmp`, which is meant for large files.
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
