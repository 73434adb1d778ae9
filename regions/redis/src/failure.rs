//! The failures of one exchange of requests and answers with a server, by whether the exchange is worth repeating.

use crate::target::{Address, Target};
use redis::{ErrorKind, RedisError, ServerError, Value};

/// A failed exchange with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server gave no answer, or none that Redis gives. The request may succeed on another connection.
    NoAnswer(String),
    /// The server cannot answer yet, or another server must: the server is starting, the hash slot has moved, or the
    /// cluster is electing a primary.
    Retry(String),
    /// The hash slot is being moved to the server at this address, which has the key already.
    Ask(Address),
    /// The request would fail again if it were repeated.
    Permanent(String),
}

impl Failure {
    /// Classifies an error of the client library, which could not connect, log in, send or receive.
    pub(crate) fn of_library(error: &RedisError, target: &Target) -> Failure {
        let said = target.without_secrets(&error.to_string());
        match error.kind() {
            ErrorKind::AuthenticationFailed => Failure::Permanent(
                "wrong user or password. They come from the address, from passfile=FILE, from \
                 LARGESSE_REDIS_USER and LARGESSE_REDIS_PASSWORD, or LARGESSE_REDIS_PASSWORD_FILE"
                    .into(),
            ),
            _ if said.contains("UnknownIssuer") => Failure::NoAnswer(format!(
                "{said}: name the authority that signed the certificate with ca=FILE"
            )),
            _ if said.contains("CertificateRequired") => {
                Failure::NoAnswer(format!("{said}: name your certificate with cert=FILE and key=FILE"))
            }
            ErrorKind::Io if error.is_timeout() => Failure::NoAnswer("no answer".into()),
            ErrorKind::Io => Failure::NoAnswer(said),
            ErrorKind::Parse => {
                Failure::NoAnswer(format!("the server is not Redis, or expects TLS ({said})"))
            }
            _ => Failure::Permanent(said),
        }
    }

    /// Returns the first error among the answers of a server, including those inside a transaction.
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
                None => Failure::Permanent(said),
            },
            "MOVED" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" | "BUSY"
            | "NOREPLICAS" => Failure::Retry(said),
            "OOM" => Failure::Permanent("it is full, although it had room when the pages were reserved".into()),
            "NOAUTH" => Failure::Permanent(
                "it requires a password. Set LARGESSE_REDIS_PASSWORD, or LARGESSE_REDIS_PASSWORD_FILE to a file with it"
                    .into(),
            ),
            _ => Failure::Permanent(said),
        }
    }

    /// Returns the reason, worded for the error message.
    pub(crate) fn why(self) -> String {
        match self {
            Failure::NoAnswer(why) | Failure::Retry(why) | Failure::Permanent(why) => why,
            Failure::Ask(address) => format!("its slot is being moved to {address}"),
        }
    }
}
