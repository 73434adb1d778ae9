//! Recognizes the stores that programs reach through an agent, and secrets in the names of stores.

use largesse_settings::StoreName;

/// Environment variable with the password of a store. It is removed before the program starts.
pub const PASSWORD: &str = "LARGESSE_REDIS_PASSWORD";

/// The forms of names of stores that programs reach through an agent, as messages list them.
pub const ACCEPTED: &str = "memory:, redis://HOST:PORT, rediss://HOST:PORT";

/// Returns whether programs reach `store` through an agent that Largesse starts for them.
#[must_use]
pub fn is_agents(store: &str) -> bool {
    matches!(StoreName::parse(store), Some(StoreName::Memory(_) | StoreName::Redis))
}

/// Returns whether the name of the store contains a password.
#[must_use]
pub fn has_password(store: &str) -> bool {
    let login = store.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    login.is_some_and(|(login, _)| login.contains(':'))
}

/// Returns the name of the store without the user and password before an `@`.
#[must_use]
pub fn without_secrets(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A password may contain an @ or a slash, so everything up to the last @ is removed.
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
    fn stores_of_agents_are_recognized() {
        assert!(ACCEPTED.split(", ").all(is_agents));
        assert!(!is_agents("memory") && !is_agents("file:/x") && !is_agents("mpi:") && !is_agents(""));
    }
}
