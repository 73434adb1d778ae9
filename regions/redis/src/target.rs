//! What `redis://…` says.

use redis::{ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use std::fmt;
use std::time::Duration;

const FORM: &str = "an address is redis://[user:password@]host[:port], or rediss:// for TLS; in user and \
                    password write %40 for @, %2F for /, %23 for #, %3A for :, %3F for ?, %25 for %";
const PARAMETERS: &str = "what follows ? may be ca=FILE, cert=FILE, key=FILE, passfile=FILE, \
                          lease=SECONDS (10 and more), timeout=SECONDS, replicas=NUMBER, joined by &";

/// Why a server cannot be a store. Worded for the user, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisRefused {
    /// The address cannot be understood.
    Address(String),
    /// A file that it names cannot be read.
    File {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The server is not there, does not want us, or is of no use.
    Server(String),
}

impl fmt::Display for RedisRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedisRefused::Address(why) | RedisRefused::Server(why) => f.write_str(why),
            RedisRefused::File { path, why } => write!(f, "{path}: {why}"),
        }
    }
}

impl std::error::Error for RedisRefused {}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// As servers write it: `HOST:PORT`, without brackets.
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

/// Which server, how to reach it, and as whom. It prints without the password.
#[derive(Clone)]
pub struct Target {
    pub(crate) address: Address,
    info: ConnectionInfo,
    /// What a `rediss://` server is checked against, and what we show it.
    pub(crate) certificates: Option<TlsCertificates>,
    /// Keys live so long without us.
    pub(crate) lease: Duration,
    /// So long a server may be away before it counts as lost.
    pub(crate) patience: Duration,
    /// Replicas that must have a page; without a number, one where there is one.
    pub(crate) replicas: Option<u32>,
}

impl Target {
    /// `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?…]`, or `rediss://` for TLS. Reads the files it names.
    pub fn parse(text: &str) -> Result<Target, RedisRefused> {
        let wrong = || RedisRefused::Address(FORM.into());
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
            patience: Duration::from_secs(30),
            replicas: None,
        };
        target.heed(&parameters)?;
        Ok(target)
    }

    fn heed(&mut self, parameters: &[(String, String)]) -> Result<(), RedisRefused> {
        let (mut ca, mut certificate, mut key) = (None, None, None);
        for (name, value) in parameters {
            let number = |least: u32| {
                let found = value.parse().ok().filter(|&it: &u32| it >= least);
                found.ok_or_else(|| RedisRefused::Address(format!("{name}={value}: {PARAMETERS}")))
            };
            match &**name {
                "lease" => self.lease = Duration::from_secs(number(10)?.into()),
                "timeout" => self.patience = Duration::from_secs(number(1)?.into()),
                "replicas" => self.replicas = Some(number(0)?),
                "passfile" => self.log_in(None, Some(password_in(value)?)),
                "ca" => ca = Some(read(value)?),
                "cert" => certificate = Some(read(value)?),
                "key" => key = Some(read(value)?),
                // Its name may be a piece of a password.
                _ => return Err(RedisRefused::Address(PARAMETERS.into())),
            }
        }
        let client_tls = match (certificate, key) {
            (None, None) => None,
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            _ => return Err(RedisRefused::Address("cert=FILE and key=FILE need each other".into())),
        };
        match &mut self.certificates {
            Some(certificates) => *certificates = TlsCertificates { client_tls, root_cert: ca },
            None if ca.is_some() || client_tls.is_some() => {
                return Err(RedisRefused::Address("ca, cert and key need rediss://".into()));
            }
            None => {}
        }
        Ok(())
    }

    /// Whether the address, or a file that it names, had a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        self.password().is_some()
    }

    /// Names the user and the password where the address did not.
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

    /// The same login at another address.
    pub(crate) fn at(&self, address: &Address) -> ConnectionInfo {
        let Address { host, port } = address.clone();
        let addr = match self.certificates {
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        };
        self.info.clone().set_addr(addr)
    }

    /// How long one exchange may take: several fit into the patience.
    pub(crate) fn exchange(&self) -> Duration {
        (self.patience / 4).min(Duration::from_secs(5))
    }

    /// Takes the password out of what a server or a library said: some servers repeat what they got.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        match self.password().filter(|it| !it.is_empty()) {
            Some(password) => text.replace(password, "***"),
            None => text.to_owned(),
        }
    }
}

/// The first line of a file.
pub fn password_in(path: &str) -> Result<String, RedisRefused> {
    let text = String::from_utf8(read(path)?).unwrap_or_default();
    let line = text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned);
    line.ok_or_else(|| RedisRefused::File { path: path.into(), why: "no password in its first line".into() })
}

fn read(path: &str) -> Result<Vec<u8>, RedisRefused> {
    std::fs::read(path).map_err(|error| RedisRefused::File { path: path.into(), why: error.to_string() })
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
    fn an_address_says_where_as_whom_and_how() {
        let target = Target::parse("redis://ann:p%40ss@db.example/2?lease=600&timeout=5&replicas=1").unwrap();
        let login = target.info.redis_settings();
        assert_eq!((target.to_string(), login.db()), ("redis://db.example:6379".into(), 2));
        assert_eq!((login.username(), login.password()), (Some("ann"), Some("p@ss")));
        assert_eq!((target.lease.as_secs(), target.patience.as_secs(), target.replicas), (600, 5, Some(1)));
        let target = Target::parse("rediss://[::1]:7000").unwrap();
        assert_eq!((target.to_string(), target.has_password()), ("rediss://[::1]:7000".into(), false));
    }

    #[test]
    fn the_address_comes_before_other_logins() {
        let mut target = Target::parse("redis://:first@host").unwrap();
        target.log_in(Some("bob".into()), Some("second".into()));
        let login = target.info.redis_settings();
        assert_eq!((login.username(), login.password()), (Some("bob"), Some("first")));
    }

    #[test]
    fn nothing_that_is_printed_has_the_password() {
        let target = Target::parse("redis://ann:hunter2@host").unwrap();
        assert_eq!(format!("{target} {target:?}"), "redis://host:6379 redis://host:6379");
        assert_eq!(target.without_secrets("unknown `AUTH`, with `hunter2`"), "unknown `AUTH`, with `***`");
    }

    #[test]
    fn what_has_no_sense_is_refused_without_repeating_a_password() {
        for (text, words) in [
            ("redis://ann:hunter2@host:port", "redis://[user"),
            ("redis://ann:hunter2/x@host", "%2F for /"),
            ("redis://ann:hunter2#x@host", "%23 for #"),
            ("redis://ann:1?hunter2@host", "what follows ?"),
            ("http://ann:hunter2@host", "redis://[user"),
            ("redis://ann:hunter2@host/first", "redis://[user"),
            ("redis+unix:///tmp/socket?pass=hunter2", "redis://[user"),
            ("redis://ann:hunter2@host?lease=5", "lease=5: "),
            ("redis://ann:hunter2@host?timeout=0", "timeout=0: "),
            ("redis://host?password=hunter2", "passfile=FILE"),
            ("redis://ann:hunter2@host?ca=/etc/hostname", "need rediss://"),
            ("rediss://ann:hunter2@host?cert=/etc/hostname", "need each other"),
            ("rediss://ann:hunter2@host?ca=/no/such", "/no/such: No such file"),
            ("redis://host?passfile=/dev/null", "no password in its first line"),
            ("redis:", "redis://[user"),
        ] {
            let message = Target::parse(text).unwrap_err().to_string();
            assert!(message.contains(words) && !message.contains("hunter2"), "{text}: {message}");
        }
    }
}
