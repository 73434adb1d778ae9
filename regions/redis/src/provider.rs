//! Places for pages: what the spaces of one process share.

use crate::info::may_evict;
use crate::lease_renewer;
use crate::link::Requests;
use crate::reservations::{HOME, Ledger, PAGE, Part, SpaceId};
use crate::servers::{Effect, Servers};
use crate::store::Space;
use crate::target::{RedisRefused, Target};
use largesse_store::{PageStore as _, ProvidedStore, StoreError, StoreProvider};
use redis::Value;
use std::fmt;
use std::io::Read;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Pages or keys of one command or message: the server works on one part while the next is on its way.
pub(crate) const TOGETHER: usize = 128;

/// What all spaces of one process share.
pub(crate) struct Shared {
    pub(crate) servers: Servers,
    pub(crate) ledger: Mutex<Ledger>,
    opened: Instant,
    /// Why nothing may be kept there any more.
    doom: OnceLock<String>,
    /// Its end stops the keeper.
    _alive: Sender<()>,
}

impl Shared {
    pub(crate) fn lost(&self, why: &str) -> StoreError {
        let target = self.servers.target();
        StoreError::Lost(format!("{target}: {why}"))
    }

    pub(crate) fn doom(&self, why: String) {
        let _ = self.doom.set(why); // the first reason stays
    }

    /// Every request about pages.
    pub(crate) fn run(
        &self,
        part: &Part,
        requests: &Requests,
        effect: Effect,
    ) -> Result<Vec<Value>, StoreError> {
        if let Some(why) = self.doom.get() {
            return Err(self.lost(why));
        }
        let patience = self.servers.target().patience;
        self.servers.run(part.slot, requests, effect, patience).map_err(|why| self.lost(&why))
    }

    /// A page that was written is not there.
    pub(crate) fn missing(&self, part: &Part) -> StoreError {
        let restarted = "it was restarted and no longer has its data";
        self.lost(&match self.servers.info(part.slot) {
            Ok(info) if info.uptime + Duration::from_secs(2) < self.opened.elapsed() => restarted.into(),
            Ok(info) if info.evicts() => may_evict(&info.policy),
            _ => format!(
                "pages are gone: somebody deleted keys, or we were stopped for longer than the lease of {} s \
                 (lease=SECONDS in the address)",
                self.servers.target().lease.as_secs()
            ),
        })
    }

    /// The same command for many keys, sent to each primary together.
    pub(crate) fn for_keys(
        &self,
        keys: &[(String, u16)],
        command: impl Fn(&str) -> redis::Cmd,
        patience: Duration,
    ) -> Result<(), String> {
        let layout = self.servers.layout();
        for (primary, slot) in layout.primaries() {
            let mine = |slot: u16| layout.shard(slot).is_some_and(|shard| shard.primary == *primary);
            let mine: Vec<_> = keys.iter().filter(|(_, slot)| mine(*slot)).collect();
            for keys in mine.chunks(TOGETHER) {
                let mut requests = Requests::default();
                for (key, _) in keys {
                    requests.add(&command(key));
                }
                self.servers.run(slot, &requests, Effect::Passing, patience)?;
            }
        }
        Ok(())
    }
}

/// A server, or a cluster, that holds spaces.
pub struct RedisSpaces(Arc<Shared>);

/// Connects, logs in, and sees whether pages would be safe there.
pub fn open(target: Target) -> Result<RedisSpaces, RedisRefused> {
    let name = target.to_string();
    let refused = |why: String| RedisRefused::Server(format!("{name}: {why}"));
    let servers = Servers::open(target).map_err(|failure| refused(failure.why()))?;
    let (alive, ended) = std::sync::mpsc::channel();
    let shared = Shared {
        servers,
        ledger: Mutex::default(),
        opened: Instant::now(),
        doom: OnceLock::new(),
        _alive: alive,
    };
    let spaces = RedisSpaces(Arc::new(shared));
    for (_, slot) in spaces.0.servers.layout().primaries() {
        spaces.fit(slot).map_err(|error| RedisRefused::Server(error.to_string()))?;
    }
    lease_renewer::start(&spaces.0, ended).map_err(|error| refused(error.to_string()))?;
    Ok(spaces)
}

impl RedisSpaces {
    /// Whether the primary of a slot keeps what it gets, lets us in, and its replicas are known.
    fn fit(&self, slot: u16) -> Result<(), StoreError> {
        let servers = &self.0.servers;
        let info = servers.info(slot).map_err(|why| self.0.lost(&why))?;
        if info.evicts() {
            return Err(self.0.lost(&may_evict(&info.policy)));
        }
        let layout = servers.layout();
        let primary = |slot| layout.shard(slot).map(|shard| &shard.primary);
        let space = self.space()?;
        if let Some(at) = (0..).map(|home| home * HOME).find(|&at| primary(space.slot(at)) == primary(slot)) {
            space.write(at, &[1; PAGE])?;
            space.read(at, &mut [0; PAGE])?;
        }
        // Servers of a cluster learn of each other's replicas within seconds.
        let began = Instant::now();
        while info.replicas > 0 && servers.layout().shard(slot).is_some_and(|it| it.replicas.is_empty()) {
            if began.elapsed() > servers.target().patience {
                return Err(self.0.lost("the cluster does not know a replica that its primary has"));
            }
            std::thread::sleep(Duration::from_millis(100));
            servers.look_again(slot);
        }
        Ok(())
    }

    fn space(&self) -> Result<Space, StoreError> {
        let mut id = [0; 16];
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
        random.map_err(|error| StoreError::System {
            call: "/dev/urandom",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        Ok(Space::new(Arc::clone(&self.0), SpaceId::from_ne_bytes(id)))
    }
}

impl fmt::Debug for RedisSpaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisSpaces({})", self.0.servers.target())
    }
}

impl StoreProvider for RedisSpaces {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        Ok(Box::new(self.space()?))
    }
}
