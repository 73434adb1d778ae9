//! Reads the words among the settings of far memory: names of stores, fault engines, and switches.

/// The name of a store, divided at its first colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreName<'a> {
    /// `file:PATH`, with a path that is not empty.
    File(&'a str),
    /// `agent:NAME`. Whether the name is valid is checked by the agent's crate.
    Agent(&'a str),
    /// `memory:`, with the text after the colon, which should be empty.
    Memory(&'a str),
    /// The address of a Redis or Valkey server: `redis:…` or `rediss:…`.
    Redis,
    /// `mpi:`, with the text after the colon: empty, or a size that [`room`](crate::room) reads.
    Mpi(&'a str),
}

impl StoreName<'_> {
    /// Reads `--far`, `LARGESSE_FAR` and R's `far_memory(store)`; returns `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<StoreName<'_>> {
        match text.split_once(':')? {
            ("file", path) if !path.is_empty() => Some(StoreName::File(path)),
            ("agent", name) => Some(StoreName::Agent(name)),
            ("memory", rest) => Some(StoreName::Memory(rest)),
            ("redis" | "rediss", _) => Some(StoreName::Redis),
            ("mpi", room) => Some(StoreName::Mpi(room)),
            _ => None,
        }
    }
}

/// How faults are delivered and handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEngine {
    /// Userfaultfd delivers faults, in the best mode that this user may open.
    Auto,
    /// Userfaultfd delivers faults, including those in system calls.
    Events,
    /// Userfaultfd delivers faults in user mode, which every user may open. A filter of system calls makes far memory
    /// resident for them.
    UserMode,
    /// SIGBUS delivers faults to the faulting thread. A filter of system calls makes far memory resident for them.
    Thread,
}

impl FaultEngine {
    /// The words of `--fault-engine` and `LARGESSE_FAULT_ENGINE`, and their meanings.
    pub const WORDS: [(&'static str, FaultEngine); 4] = [
        ("auto", FaultEngine::Auto),
        ("events", FaultEngine::Events),
        ("user-mode", FaultEngine::UserMode),
        ("thread", FaultEngine::Thread),
    ];
}

/// The words of settings that switch something on or off, and their meanings.
pub const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_recognized_by_their_first_word() {
        for (text, want) in [
            ("file:/x:y", StoreName::File("/x:y")),
            ("agent:5", StoreName::Agent("5")),
            ("memory:", StoreName::Memory("")),
            ("memory:5", StoreName::Memory("5")),
            ("redis://host:6379/0", StoreName::Redis),
            ("rediss://host", StoreName::Redis),
            ("mpi:", StoreName::Mpi("")),
            ("mpi:4G", StoreName::Mpi("4G")),
        ] {
            assert_eq!(StoreName::parse(text), Some(want), "{text}");
        }
        for other in ["", "memory", "file:", "/scratch/a", "ftp:/a", "Memory:", " file:/x"] {
            assert_eq!(StoreName::parse(other), None, "{other}");
        }
    }
}
