//! Parses addresses of Redis servers, of the form `redis://…`.

use redis::{ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use std::fmt;
use std::io::Read as _;
use std::time::Duration;

const FORM: &str = "an address is redis://[user:password@]host[:port], or rediss:// for TLS; in user and \
                    password write %40 for @, %2F for /, %23 for #, %3A for :, %3F for ?, %25 for %";
const PARAMETERS: &str = "the parameters after ? are ca=FILE, cert=FILE, key=FILE, passfile=FILE, \
                          lease=SECONDS (10 and more), timeout=SECONDS, replicas=NUMBER, joined by &";

/// The reason why a server cannot be used as a store, worded for the user and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisError {
    /// The address cannot be parsed.
    Address(String),
    /// A file that the address names cannot be read.
    File {
        /// Path of the file, as in the address.
        path: String,
        /// The message of the operating system or of the parser.
        why: String,
    },
    /// The server cannot be reached, refuses the login, or may evict pages.
    Server(String),
}

impl fmt::Display for RedisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedisError::Address(why) | RedisError::Server(why) => f.write_str(why),
            RedisError::File { path, why } => write!(f, "{path}: {why}"),
        }
    }
}

impl std::error::Error for RedisError {}

/// The host and the port on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Parses an address as servers write it: `HOST:PORT`, without brackets around IPv6 addresses.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        (!host.is_empty()).then_some(())?;
        Some(Address { host: host.to_owned(), port: port.parse().ok()? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A parsed address of a store: the server, the login, and the parameters. `Display` and `Debug` omit the password.
#[derive(Clone)]
pub struct Target {
    pub(crate) address: Address,
    info: ConnectionInfo,
    /// The authority that must have signed the certificate of a `rediss://` server, and the client's own certificate.
    pub(crate) certificates: Option<TlsCertificates>,
    /// Time to live of keys: a server deletes keys that are not prolonged within this time.
    pub(crate) lease: Duration,
    /// Time without an answer after which a server counts as lost.
    pub(crate) timeout: Duration,
    /// Number of replicas that must have confirmed a write. `None` means one if the primary has any.
    pub(crate) replicas: Option<u32>,
}

impl Target {
    /// Parses `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?…]`, or `rediss://` for TLS. Reads the files that the
    /// address names.
    pub fn parse(text: &str) -> Result<Target, RedisError> {
        let wrong = || RedisError::Address(FORM.into());
        let url = redis::parse_redis_url(text).filter(|url| url.fragment().is_none()).ok_or_else(wrong)?;
        let parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut bare = url;
        bare.set_query(None);
        let info = bare.into_connection_info().map_err(|_| wrong())?;
        let (host, port, tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => (host, *port, false),
            ConnectionAddr::TcpTls { host, port, .. } => (host, *port, true),
            _ => return Err(wrong()),
        };
        let mut target = Target {
            address: Address { host: host.clone(), port },
            certificates: tls.then_some(TlsCertificates { client_tls: None, root_cert: None }),
            info,
            lease: Duration::from_secs(3600),
            timeout: Duration::from_secs(30),
            replicas: None,
        };
        target.apply_parameters(&parameters)?;
        Ok(target)
    }

    fn apply_parameters(&mut self, parameters: &[(String, String)]) -> Result<(), RedisError> {
        let (mut ca, mut certificate, mut key) = (None, None, None);
        for (name, value) in parameters {
            let number = |least: u32| {
                let found = value.parse().ok().filter(|&it: &u32| it >= least);
                found.ok_or_else(|| RedisError::Address(format!("{name}={value}: {PARAMETERS}")))
            };
            match &**name {
                "lease" => self.lease = Duration::from_secs(number(10)?.into()),
                "timeout" => self.timeout = Duration::from_secs(number(1)?.into()),
                "replicas" => self.replicas = Some(number(0)?),
                "passfile" => self.log_in(None, Some(password_in(value)?)),
                "ca" => ca = Some(read(value)?),
                "cert" => certificate = Some(read(value)?),
                "key" => key = Some(read(value)?),
                // The message does not repeat the name, which may be a part of a password with a `?`.
                _ => return Err(RedisError::Address(PARAMETERS.into())),
            }
        }
        let client_tls = match (certificate, key) {
            (None, None) => None,
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            _ => return Err(RedisError::Address("cert=FILE and key=FILE must be given together".into())),
        };
        match &mut self.certificates {
            Some(certificates) => *certificates = TlsCertificates { client_tls, root_cert: ca },
            None if ca.is_some() || client_tls.is_some() => {
                return Err(RedisError::Address("ca, cert and key need rediss://".into()));
            }
            None => {}
        }
        Ok(())
    }

    /// Returns whether the address, or a file that the address names, contains a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password().is_some()
    }

    /// Sets the user and the password, unless the address has its own.
    pub fn log_in(&mut self, user: Option<String>, password: Option<String>) {
        let mut login = self.info.redis_settings().clone();
        if let Some(user) = user.filter(|_| login.username().is_none()) {
            login = login.set_username(user);
        }
        if let Some(password) = password.filter(|_| login.password().is_none()) {
            login = login.set_password(password);
        }
        self.info = self.info.clone().set_redis_settings(login);
    }

    fn password(&self) -> Option<&str> {
        self.info.redis_settings().password()
    }

    /// Returns the connection settings for another server of the cluster, with the same login.
    pub(crate) fn at(&self, address: &Address) -> ConnectionInfo {
        let Address { host, port } = address.clone();
        let addr = match self.certificates {
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        };
        self.info.clone().set_addr(addr)
    }

    /// Returns the time limit of one exchange. It is so short that a request can be repeated within the timeout.
    pub(crate) fn exchange(&self) -> Duration {
        (self.timeout / 4).min(Duration::from_secs(5))
    }

    /// Replaces the password in a message of a server or of the client library, because some servers repeat requests in
    /// their messages.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        match self.password().filter(|it| !it.is_empty()) {
            Some(password) => text.replace(password, "***"),
            None => text.to_owned(),
        }
    }
}

/// Returns the first line of a file, which is a password.
pub fn password_in(path: &str) -> Result<String, RedisError> {
    let text = String::from_utf8(read(path)?).unwrap_or_default();
    let line = text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned);
    line.ok_or_else(|| RedisError::File { path: path.into(), why: "no password in its first line".into() })
}

/// Largest number of bytes of a file with a password or certificates.
const MOST: u64 = 16 << 20;

fn read(path: &str) -> Result<Vec<u8>, RedisError> {
    let refused = |why: String| RedisError::File { path: path.into(), why };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    let is_whole = bytes.len() as u64 <= MOST;
    if is_whole { Ok(bytes) } else { Err(refused(format!("it is larger than {} MiB", MOST >> 20))) }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}", self.address)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_gives_server_login_and_parameters() {
        let target = Target::parse("redis://ann:p%40ss@db.example/2?lease=600&timeout=5&replicas=1").unwrap();
        let login = target.info.redis_settings();
        assert_eq!((target.to_string(), login.db()), ("redis://db.example:6379".into(), 2));
        assert_eq!((login.username(), login.password()), (Some("ann"), Some("p@ss")));
        assert_eq!((target.lease.as_secs(), target.timeout.as_secs(), target.replicas), (600, 5, Some(1)));
        let target = Target::parse("rediss://[::1]:7000").unwrap();
        assert_eq!((target.to_string(), target.has_password()), ("rediss://[::1]:7000".into(), false));
    }

    #[test]
    fn login_in_the_address_takes_precedence() {
        let mut target = Target::parse("redis://:first@host").unwrap();
        target.log_in(Some("bob".into()), Some("second".into()));
        let login = target.info.redis_settings();
        assert_eq!((login.username(), login.password()), (Some("bob"), Some("first")));
    }

    #[test]
    fn password_is_never_printed() {
        let target = Target::parse("redis://ann:hunter2@host").unwrap();
        assert_eq!(format!("{target} {target:?}"), "redis://host:6379 redis://host:6379");
        assert_eq!(target.without_secrets("unknown `AUTH`, with `hunter2`"), "unknown `AUTH`, with `***`");
    }

    #[test]
    fn invalid_addresses_are_refused_without_repeating_a_password() {
        for (text, words) in [
            ("redis://ann:hunter2@host:port", "redis://[user"),
            ("redis://ann:hunter2/x@host", "%2F for /"),
            ("redis://ann:hunter2#x@host", "%23 for #"),
            ("redis://ann:1?hunter2@host", "the parameters after ?"),
            ("http://ann:hunter2@host", "redis://[user"),
            ("redis://ann:hunter2@host/first", "redis://[user"),
            ("redis+unix:///tmp/socket?pass=hunter2", "redis://[user"),
            ("redis://ann:hunter2@host?lease=5", "lease=5: "),
            ("redis://ann:hunter2@host?timeout=0", "timeout=0: "),
            ("redis://host?password=hunter2", "passfile=FILE"),
            ("redis://ann:hunter2@host?ca=/etc/hostname", "need rediss://"),
            ("rediss://ann:hunter2@host?cert=/etc/hostname", "must be given together"),
            ("rediss://ann:hunter2@host?ca=/no/such", "/no/such: No such file"),
            ("redis://host?passfile=/dev/null", "no password in its first line"),
            ("redis:", "redis://[user"),
        ] {
            let message = Target::parse(text).unwrap_err().to_string();
            assert!(message.contains(words) && !message.contains("hunter2"), "{text}: {message}");
        }
    }
}
