//! What a server says about itself: `INFO`.

use crate::failure::Failure;
use redis::Value;
use std::time::Duration;

/// The lines that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// Bytes that it uses.
    pub(crate) used: u64,
    /// Bytes that it may use.
    pub(crate) most: u64,
    /// What it does when it is full.
    pub(crate) policy: String,
    /// How long it has been running.
    pub(crate) uptime: Duration,
    /// Whether it is one of a cluster.
    pub(crate) cluster: bool,
    /// Whether it copies another server.
    pub(crate) copies: bool,
    /// Servers that copy it and are up to date.
    pub(crate) replicas: usize,
}

impl Info {
    /// The only answer.
    pub(crate) fn among(answers: &[Value]) -> Result<Info, Failure> {
        let info = match answers {
            [Value::BulkString(text)] => Info::parse(&String::from_utf8_lossy(text)),
            _ => None,
        };
        info.ok_or_else(|| Failure::Refused("INFO is not what a Redis says".into()))
    }

    /// `None`: not what a server says.
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
            copies: find("role")? != "master",
            replicas: text.lines().filter(replica).count(),
        })
    }

    /// Whether keys disappear when there is no room. All other policies take those with a time to live.
    pub(crate) fn evicts(&self) -> bool {
        self.policy != "noeviction"
    }
}

/// The words for a server that may evict keys.
pub(crate) fn may_evict(policy: &str) -> String {
    format!(
        "it may drop pages when it is full (maxmemory-policy is {policy}). Type:\n  \
         redis-cli CONFIG SET maxmemory-policy noeviction\nand have the same in its configuration"
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
    fn what_a_server_says_is_understood() {
        let info = Info::parse(TEXT).unwrap();
        assert_eq!((info.used, info.most, info.uptime.as_secs()), (1000, 9000, 77));
        assert!(info.evicts() && info.cluster && !info.copies);
        assert_eq!(info.replicas, 1, "one is not up to date yet");
        let limited = TEXT.replace("maxmemory:0", "maxmemory:5000").replace("allkeys-lru", "noeviction");
        assert_eq!(Info::parse(&limited).map(|info| (info.most, info.evicts())), Some((5000, false)));
        assert_eq!(Info::parse("HTTP/1.1 400 Bad Request"), None);
    }
}
