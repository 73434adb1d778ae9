//! Stores that are reached through an agent, by the word before the colon.

use super::redis;
use largesse_agent::Place;

/// Makes one of what its name says; words for the user where it cannot be had.
type Open = fn(&str) -> Result<Place, String>;

const STORES: &[(&str, &str, Open)] = &[
    ("memory", "memory:", memory),
    ("redis", "redis://HOST:PORT", redis::open),
    ("rediss", "rediss://HOST:PORT", redis::open),
];

fn memory(name: &str) -> Result<Place, String> {
    if name == "memory:" {
        Place::memory()
    } else {
        Err(format!("{name} is not understood; it is memory: alone"))
    }
}

fn find(store: &str) -> Option<&'static (&'static str, &'static str, Open)> {
    let (scheme, _) = store.split_once(':')?;
    STORES.iter().find(|(known, ..)| *known == scheme)
}

/// Whether programs reach it through an agent.
pub(crate) fn is_agents(store: &str) -> bool {
    find(store).is_some()
}

/// How such stores are written.
pub(crate) fn accepted() -> String {
    STORES.iter().map(|(_, written, _)| *written).collect::<Vec<_>>().join(", ")
}

pub(super) fn open(store: &str) -> Result<Place, String> {
    let (_, _, open) = find(store)
        .ok_or_else(|| format!("{} is not a store; {} are", without_secrets(store), accepted()))?;
    open(store)
}

/// Whether a password is in it.
pub(crate) fn has_password(store: &str) -> bool {
    let login = store.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    login.is_some_and(|(login, _)| login.contains(':'))
}

/// As people may read it: without what stands before an `@`.
pub(crate) fn without_secrets(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A password may hold an @ or a slash of its own: everything up to the last @ goes.
    match (place.rsplit_once('@'), rest.rsplit_once('@')) {
        (Some((_, host)), None | Some(_)) if !path.contains('@') => format!("{scheme}://{host}{path}"),
        (_, Some((_, host))) => format!("{scheme}://{host}"),
        _ => store.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        for (store, want) in [
            ("memory:", "memory:"),
            ("redis://host:6379/0", "redis://host:6379/0"),
            ("redis://ann:secret@host:6379/0", "redis://host:6379/0"),
            ("rediss://:s/e@c@host", "rediss://host"),
            ("redis://:se/cr@et@host/1", "redis://host/1"),
        ] {
            assert_eq!(without_secrets(store), want);
            assert_eq!(has_password(store), store != want);
        }
    }

    #[test]
    fn stores_are_known_by_their_first_word() {
        assert!(is_agents("memory:") && !is_agents("memory") && !is_agents("file:/x") && !is_agents(""));
        assert!(open("tape:x").unwrap_err().contains("memory:"));
        assert!(open("memory:5").unwrap_err().contains("alone"));
    }
}
