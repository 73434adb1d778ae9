//! The store provider: connects to the servers, checks them, and makes stores on them.

use crate::info::may_evict;
use crate::lease_renewer;
use crate::reservations::{HOME, PAGE, StoreId};
use crate::servers::Servers;
use crate::shared::Shared;
use crate::store::RedisStore;
use crate::target::{RedisError, Target};
use largesse_store::{PageStore as _, ProvidedStore, StoreError, StoreProvider};
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Makes stores on a server or a cluster. All of them share the connections.
pub struct RedisProvider(Arc<Shared>);

/// Connects and logs in to the server, or to each primary of its cluster. Checks that none of them may evict pages, and
/// that a trial page can be written and read on each.
pub fn open(target: Target) -> Result<RedisProvider, RedisError> {
    let name = target.to_string();
    let refused = |why: String| RedisError::Server(format!("{name}: {why}"));
    let servers = Servers::open(target).map_err(|failure| refused(failure.why()))?;
    let (alive, ended) = std::sync::mpsc::channel();
    let provider = RedisProvider(Arc::new(Shared::new(servers, alive)));
    for (_, slot) in provider.0.servers.layout().primaries() {
        provider.check(slot).map_err(|error| RedisError::Server(error.to_string()))?;
    }
    lease_renewer::start(&provider.0, ended).map_err(|error| refused(error.to_string()))?;
    Ok(provider)
}

impl RedisProvider {
    /// Checks that the primary of a hash slot evicts nothing, that a page can be written to it and read back, and that
    /// the cluster knows its replicas.
    fn check(&self, slot: u16) -> Result<(), StoreError> {
        let servers = &self.0.servers;
        let info = servers.info(slot).map_err(|why| self.0.lost(&why))?;
        if info.evicts() {
            return Err(self.0.lost(&may_evict(&info.policy)));
        }
        let layout = servers.layout();
        let primary = |slot| layout.shard(slot).map(|shard| &shard.primary);
        let store = self.new_store()?;
        if let Some(at) = (0..).map(|home| home * HOME).find(|&at| primary(store.slot(at)) == primary(slot)) {
            store.write(at, &[1; PAGE])?;
            store.read(at, &mut [0; PAGE])?;
        }
        // Servers of a cluster learn of each other's replicas only after some seconds.
        let began = Instant::now();
        while info.replicas > 0 && servers.layout().shard(slot).is_some_and(|it| it.replicas.is_empty()) {
            if began.elapsed() > servers.target().timeout {
                return Err(self.0.lost("the cluster does not know a replica that its primary has"));
            }
            std::thread::sleep(Duration::from_millis(100));
            servers.update_layout(slot);
        }
        Ok(())
    }

    /// Makes a store with a random identifier, so that no server has its keys yet.
    fn new_store(&self) -> Result<RedisStore, StoreError> {
        let mut id = [0; 16];
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
        random.map_err(|error| StoreError::System {
            call: "/dev/urandom",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        Ok(RedisStore::new(Arc::clone(&self.0), StoreId::from_ne_bytes(id)))
    }
}

impl fmt::Debug for RedisProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisProvider({})", self.0.servers.target())
    }
}

impl StoreProvider for RedisProvider {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        Ok(Box::new(self.new_store()?))
    }
}
