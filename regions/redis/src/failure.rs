//! What may go wrong with one exchange, and whether another one makes sense.

use crate::target::{Address, Target};
use redis::{ErrorKind, RedisError, ServerError, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No answer, or none that makes sense: another connection may do better.
    Silent(String),
    /// Not now, or not here: a server that starts, a slot that has moved, a cluster that chooses a primary.
    Later(String),
    /// The slot is being moved, and this key is there already.
    Ask(Address),
    /// For good.
    Refused(String),
}

impl Failure {
    /// What the library says: connecting, logging in, sending, receiving.
    pub(crate) fn of_library(error: &RedisError, target: &Target) -> Failure {
        let said = target.without_secrets(&error.to_string());
        match error.kind() {
            ErrorKind::AuthenticationFailed => Failure::Refused(
                "wrong user or password. They come from the address, from passfile=FILE, from \
                 LARGESSE_REDIS_USER and LARGESSE_REDIS_PASSWORD, or LARGESSE_REDIS_PASSWORD_FILE"
                    .into(),
            ),
            _ if said.contains("UnknownIssuer") => {
                Failure::Silent(format!("{said}: name the authority that signed it with ca=FILE"))
            }
            _ if said.contains("CertificateRequired") => {
                Failure::Silent(format!("{said}: name yours with cert=FILE and key=FILE"))
            }
            ErrorKind::Io if error.is_timeout() => Failure::Silent("no answer".into()),
            ErrorKind::Io => Failure::Silent(said),
            ErrorKind::Parse => {
                Failure::Silent(format!("what answers there is no Redis, or expects TLS ({said})"))
            }
            _ => Failure::Refused(said),
        }
    }

    /// The first error among the answers of a server, those inside a transaction included.
    pub(crate) fn among(answers: &[Value], target: &Target) -> Option<Failure> {
        answers.iter().find_map(|answer| match answer {
            Value::ServerError(error) => Some(Failure::of_server(error, target)),
            Value::Array(inner) => Failure::among(inner, target),
            _ => None,
        })
    }

    fn of_server(error: &ServerError, target: &Target) -> Failure {
        let details = error.details().unwrap_or_default();
        let said = target.without_secrets(format!("{} {details}", error.code()).trim_end());
        match error.code() {
            "ASK" => match details.split_ascii_whitespace().nth(1).and_then(Address::parse) {
                Some(address) => Failure::Ask(address),
                None => Failure::Refused(said),
            },
            "MOVED" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" | "BUSY"
            | "NOREPLICAS" => Failure::Later(said),
            "OOM" => Failure::Refused("it is full, although there was room when it was asked for".into()),
            "NOAUTH" => Failure::Refused(
                "it wants a password. Set LARGESSE_REDIS_PASSWORD, or LARGESSE_REDIS_PASSWORD_FILE to a file with it"
                    .into(),
            ),
            _ => Failure::Refused(said),
        }
    }

    /// The words for who gives up.
    pub(crate) fn why(self) -> String {
        match self {
            Failure::Silent(why) | Failure::Later(why) | Failure::Refused(why) => why,
            Failure::Ask(address) => format!("its slot is being moved to {address}"),
        }
    }
}
