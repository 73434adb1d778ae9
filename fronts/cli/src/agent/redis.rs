//! Opens `redis://` and `rediss://` servers as stores, and chooses the user and the password.

use largesse_agent::PageStorage;
use largesse_far::{PASSWORD, environment};
use largesse_redis::{RedisError, Target, password_in};
use std::ffi::OsString;

const PASSWORD_FILE: &str = "LARGESSE_REDIS_PASSWORD_FILE";
const USER: &str = "LARGESSE_REDIS_USER";

pub(super) fn open(address: &str) -> Result<PageStorage, String> {
    let provider = target(address, environment::get).and_then(largesse_redis::open);
    provider.map(|provider| PageStorage::Provider(Box::new(provider))).map_err(|why| why.to_string())
}

/// Parses `address`, and completes it with the user and the password in the environment.
fn target(address: &str, get: impl Fn(&str) -> Option<OsString>) -> Result<Target, RedisError> {
    let text = |name| get(name).map(|value| value.to_string_lossy().into_owned()).filter(|it| !it.is_empty());
    let mut target = Target::parse(address)?;
    let password = match (target.has_password(), text(PASSWORD), text(PASSWORD_FILE)) {
        (true, ..) => None,
        (false, Some(password), _) => Some(password),
        (false, None, Some(path)) => Some(password_in(&path)?),
        (false, None, None) => None,
    };
    target.log_in(text(USER), password);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_precedes_password_precedes_file() {
        let with = |address: &str, given: &[(&str, &str)]| {
            let get = |name: &str| {
                given.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            target(address, get)
        };
        let nowhere = (PASSWORD_FILE, "/no/such");
        assert!(!with("redis://host", &[]).unwrap().has_password());
        assert!(with("redis://host", &[(PASSWORD, "one"), nowhere]).unwrap().has_password());
        assert!(with("redis://:two@host", &[nowhere]).unwrap().has_password());
        let refused = with("redis://host", &[nowhere, (PASSWORD, "")]).unwrap_err().to_string();
        assert!(refused.contains("/no/such"), "{refused}");
    }
}
