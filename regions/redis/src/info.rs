//! Parses the answer to `INFO`, by which a server describes itself.

use crate::failure::Failure;
use redis::Value;
use std::time::Duration;

/// The parts of the answer to `INFO` that this crate uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// Number of bytes of memory that the server uses.
    pub(crate) used: u64,
    /// Number of bytes of memory that the server may use: its `maxmemory`, or all memory of its machine.
    pub(crate) most: u64,
    /// The server's eviction policy: what the server does when its memory is full.
    pub(crate) policy: String,
    /// Time since the server started.
    pub(crate) uptime: Duration,
    /// Whether the server belongs to a cluster.
    pub(crate) cluster: bool,
    /// Whether the server is a replica of another one.
    pub(crate) is_replica: bool,
    /// Number of replicas of this server that are up to date.
    pub(crate) replicas: usize,
}

impl Info {
    /// Parses the answer of an exchange that consisted of `INFO` alone.
    pub(crate) fn among(answers: &[Value]) -> Result<Info, Failure> {
        let info = match answers {
            [Value::BulkString(text)] => Info::parse(&String::from_utf8_lossy(text)),
            _ => None,
        };
        info.ok_or_else(|| Failure::Permanent("its answer to INFO is not that of a Redis server".into()))
    }

    /// Parses the text of the answer. Returns `None` if it is not an answer to `INFO`.
    fn parse(text: &str) -> Option<Info> {
        let find = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
        };
        let number = |name| find(name)?.parse::<u64>().ok();
        let most = match number("maxmemory")? {
            0 => number("total_system_memory")?,
            most => most,
        };
        let replica = |line: &&str| line.starts_with("slave") && line.contains("state=online");
        Some(Info {
            used: number("used_memory")?,
            most,
            policy: find("maxmemory_policy")?.to_owned(),
            uptime: Duration::from_secs(number("uptime_in_seconds")?),
            cluster: find("cluster_enabled")? == "1",
            is_replica: find("role")? != "master",
            replicas: text.lines().filter(replica).count(),
        })
    }

    /// Returns whether the server may evict this program's keys when its memory is full. All policies but `noeviction`
    /// evict keys that have a time to live, which these keys have.
    pub(crate) fn evicts(&self) -> bool {
        self.policy != "noeviction"
    }
}

/// Returns the error message for a server that may evict keys, with the command that forbids it.
pub(crate) fn may_evict(policy: &str) -> String {
    format!(
        "it may drop pages when it is full (maxmemory-policy is {policy}). Type:\n  \
         redis-cli CONFIG SET maxmemory-policy noeviction\nand set the same in its configuration file"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Server\r\nredis_mode:standalone\r\nuptime_in_seconds:77\r\n# Memory\r\nused_memory:1000\r\n\
        used_memory_human:1K\r\ntotal_system_memory:9000\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n\
        # Replication\r\nrole:master\r\nconnected_slaves:2\r\nslave0:ip=::1,port=1,state=online,offset=1,lag=0\r\n\
        slave1:ip=::1,port=2,state=wait_bgsave,offset=0,lag=0\r\n# Cluster\r\ncluster_enabled:1\r\n";

    #[test]
    fn info_is_parsed_and_other_answers_are_refused() {
        let info = Info::parse(TEXT).unwrap();
        assert_eq!((info.used, info.most, info.uptime.as_secs()), (1000, 9000, 77));
        assert!(info.evicts() && info.cluster && !info.is_replica);
        assert_eq!(info.replicas, 1, "the other replica is not up to date yet");
        let limited = TEXT.replace("maxmemory:0", "maxmemory:5000").replace("allkeys-lru", "noeviction");
        assert_eq!(Info::parse(&limited).map(|info| (info.most, info.evicts())), Some((5000, false)));
        assert_eq!(Info::parse("HTTP/1.1 400 Bad Request"), None);
    }
}
