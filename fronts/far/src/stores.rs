//! Names of stores that are reached through an agent, by the word before the colon.

/// The variable with the password of a store, which the program must not find in its environment.
pub const PASSWORD: &str = "LARGESSE_REDIS_PASSWORD";

/// A kind of store that an agent opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Memory of the agent.
    Memory,
    /// A Redis or Valkey server.
    Redis,
}

const STORES: [(&str, &str, Scheme); 3] = [
    ("memory", "memory:", Scheme::Memory),
    ("redis", "redis://HOST:PORT", Scheme::Redis),
    ("rediss", "rediss://HOST:PORT", Scheme::Redis),
];

/// Returns the kind of the store; `None` where programs do not reach it through an agent of their own.
#[must_use]
pub fn scheme(store: &str) -> Option<Scheme> {
    let (word, _) = store.split_once(':')?;
    STORES.iter().find(|(known, ..)| *known == word).map(|(.., scheme)| *scheme)
}

/// Whether programs reach it through an agent.
#[must_use]
pub fn is_agents(store: &str) -> bool {
    scheme(store).is_some()
}

/// How such stores are written.
#[must_use]
pub fn accepted() -> String {
    STORES.map(|(_, written, _)| written).join(", ")
}

/// Whether a password is in it.
#[must_use]
pub fn has_password(store: &str) -> bool {
    let login = store.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    login.is_some_and(|(login, _)| login.contains(':'))
}

/// As people may read it: without what stands before an `@`.
#[must_use]
pub fn without_secrets(store: &str) -> String {
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
        assert_eq!(scheme("rediss://host"), Some(Scheme::Redis));
    }
}
