//! The layout of a cluster: which server has which hash slots.

use crate::failure::Failure;
use crate::info::Info;
use crate::link::{Link, Requests};
use crate::slots::SLOTS;
use crate::target::{Address, Target};
use core::ops::RangeInclusive;
use redis::Value;

/// A primary with its replicas, and a range of hash slots that they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) slots: RangeInclusive<u16>,
    pub(crate) primary: Address,
    /// The replicas that the cluster does not consider failed.
    pub(crate) replicas: Vec<Address>,
}

/// The shards of a cluster. A single server is one shard with all hash slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The version that the cluster gives to its layout. It grows with every change on which the cluster agrees.
    pub(crate) epoch: u64,
    pub(crate) shards: Vec<Shard>,
}

impl Layout {
    /// Asks the server at the other end of `link`, which has the `address`, for the layout.
    pub(crate) fn ask(link: &mut Link, address: &Address, target: &Target) -> Result<Layout, Failure> {
        let info = Info::among(&link.exchange(&[&Requests::one(&redis::cmd("INFO"))], target)?)?;
        if info.cluster {
            let mut requests = Requests::one(redis::cmd("CLUSTER").arg("INFO"));
            requests.add(redis::cmd("CLUSTER").arg("SLOTS"));
            let layout = match &link.exchange(&[&requests], target)?[..] {
                [Value::BulkString(state), slots] => {
                    Layout::of_cluster(&String::from_utf8_lossy(state), slots, address)
                }
                _ => None,
            };
            return layout
                .ok_or_else(|| Failure::Retry("the cluster does not say who has which slots".into()));
        }
        if info.is_replica {
            return Err(Failure::Retry("it is a replica: name its primary".into()));
        }
        // Only the number of replicas is used, never their addresses.
        let replicas = vec![address.clone(); info.replicas];
        let shard = Shard { slots: 0..=SLOTS - 1, primary: address.clone(), replicas };
        Ok(Layout { epoch: 0, shards: vec![shard] })
    }

    /// Parses the answers to `CLUSTER INFO` (`state`) and to `CLUSTER SLOTS`, which lists for each shard the first hash
    /// slot, the last hash slot, the primary and its replicas. A server without a name is on the host of `asked`.
    fn of_cluster(state: &str, answer: &Value, asked: &Address) -> Option<Layout> {
        let epoch = state.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"))?;
        let slot = |value: &Value| match value {
            Value::Int(slot) => u16::try_from(*slot).ok().filter(|it| *it < SLOTS),
            _ => None,
        };
        let server = |value: &Value| {
            let Value::Array(parts) = value else { return None };
            let [host, Value::Int(port), ..] = &parts[..] else { return None };
            let host = match host {
                Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
                Value::Nil => String::new(),
                _ => return None,
            };
            let host = if host.is_empty() || host == "?" { asked.host.clone() } else { host };
            Some(Address { host, port: u16::try_from(*port).ok()? })
        };
        let shard = |value: &Value| {
            let Value::Array(parts) = value else { return None };
            let [first, last, primary, replicas @ ..] = &parts[..] else { return None };
            Some(Shard {
                slots: slot(first)?..=slot(last)?,
                primary: server(primary)?,
                replicas: replicas.iter().map(server).collect::<Option<_>>()?,
            })
        };
        let Value::Array(shards) = answer else { return None };
        let shards: Vec<Shard> = shards.iter().map(shard).collect::<Option<_>>()?;
        (!shards.is_empty()).then_some(Layout { epoch: epoch.trim_end().parse().ok()?, shards })
    }

    pub(crate) fn shard(&self, slot: u16) -> Option<&Shard> {
        self.shards.iter().find(|shard| shard.slots.contains(&slot))
    }

    /// Returns the address of each primary, with one of the primary's hash slots.
    pub(crate) fn primaries(&self) -> Vec<(&Address, u16)> {
        let mut found: Vec<(&Address, u16)> = Vec::new();
        for shard in &self.shards {
            if found.iter().all(|(primary, _)| **primary != shard.primary) {
                found.push((&shard.primary, *shard.slots.start()));
            }
        }
        found
    }

    /// Returns the addresses of all servers, primaries and replicas.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Address> {
        self.shards.iter().flat_map(|shard| std::iter::once(&shard.primary).chain(&shard.replicas))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = "cluster_state:ok\r\ncluster_current_epoch:6\r\n";

    fn server(host: Value, port: i64) -> Value {
        Value::Array(vec![
            host,
            Value::Int(port),
            Value::BulkString(b"id".to_vec()),
            Value::Array(Vec::new()),
        ])
    }

    #[test]
    fn cluster_slots_are_parsed_and_invalid_ones_are_refused() {
        let asked = Address { host: "first".into(), port: 1 };
        let named = || Value::BulkString(b"second".to_vec());
        let shards = |last| {
            Value::Array(vec![
                Value::Array(vec![Value::Int(0), Value::Int(99), server(Value::Nil, 7), server(named(), 8)]),
                Value::Array(vec![Value::Int(100), Value::Int(last), server(named(), 9)]),
            ])
        };
        let layout = Layout::of_cluster(STATE, &shards(16383), &asked).unwrap();
        let first = layout.shard(99).unwrap();
        assert_eq!((first.primary.to_string(), first.replicas.len()), ("first:7".into(), 1));
        assert_eq!(layout.shard(100).unwrap().primary.to_string(), "second:9");
        assert_eq!((layout.primaries().len(), layout.epoch), (2, 6));
        assert_eq!(Layout::of_cluster(STATE, &shards(16384), &asked), None);
        assert_eq!(Layout::of_cluster(STATE, &Value::Array(Vec::new()), &asked), None);
        assert_eq!(Layout::of_cluster(STATE, &Value::Okay, &asked), None);
    }
}
