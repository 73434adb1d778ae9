//! A cluster of three primaries with a replica each. Pages survive the loss of a primary, and reads never return old
//! versions of them.

mod common;

use common::*;
use largesse_store::PageStore;

struct Cluster(Vec<Server>);

impl Cluster {
    fn start() -> Cluster {
        let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        let options = [&options[..], &["--repl-diskless-sync-delay", "0"]].concat();
        let servers: Vec<Server> = (0..6).map(|_| Server::start(&options)).collect();
        until("every server has met every other", || {
            let knows_all =
                |server: &Server| server.text(&["CLUSTER", "INFO"]).contains("cluster_known_nodes:6");
            let mut strangers = servers.iter().filter(|server| !knows_all(server)).peekable();
            let all_know = strangers.peek().is_none();
            for server in strangers {
                servers[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &server.port.to_string()]);
            }
            all_know
        });
        for (primary, slots) in servers.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]]) {
            primary.ask(&["CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1]]);
        }
        for (replica, primary) in servers[3..].iter().zip(&servers) {
            replica.ask(&["CLUSTER", "REPLICATE", &primary.text(&["CLUSTER", "MYID"])]);
        }
        let cluster = Cluster(servers);
        until("every server knows the cluster, and every replica has its primary's data", || {
            let info =
                |server: &Server| server.text(&["CLUSTER", "INFO"]) + &server.text(&["INFO", "replication"]);
            cluster.0.iter().map(info).all(|info| {
                info.contains("cluster_state:ok")
                    && (info.contains("state=online") || info.contains("master_link_status:up"))
            })
        });
        cluster
    }

    /// Returns the address of one of the servers, which knows the others.
    fn address(&self) -> String {
        format!("{}?timeout=20", self.0[5].address())
    }

    /// Returns the index of the primary that has the most keys.
    fn fullest(&self) -> usize {
        let primary = |server: &Server| server.text(&["INFO", "replication"]).contains("role:master");
        let primaries = (0..6).filter(|&number| primary(&self.0[number]));
        primaries.max_by_key(|&number| self.0[number].number(&["DBSIZE"])).unwrap()
    }
}

const HOMES: u64 = 12;
/// Number of bytes from the start of one home to the start of the next.
const STEP: u64 = HOME as u64;

fn write_all(store: &dyn PageStore, version: u8) {
    for home in 0..HOMES {
        store.write(home * STEP, &pages(home * STEP, 16 * PAGE, version)).unwrap();
    }
}

fn all_read_back(store: &dyn PageStore, version: u8) {
    for home in 0..HOMES {
        reads_back(store, home * STEP, 16 * PAGE, version);
    }
}

#[test]
fn pages_survive_the_loss_of_a_primary_but_not_of_its_replica_too() {
    let mut cluster = Cluster::start();
    let (provider, store) = new_store(&cluster.address());
    store.reserve(0, HOMES * STEP).unwrap();
    write_all(&*store, 1);
    all_read_back(&*store, 1);
    let primary = cluster.fullest();
    cluster.0[primary].kill();
    all_read_back(&*store, 1);
    write_all(&*store, 2);
    all_read_back(&*store, 2);
    drop(store);
    for number in (0..6).filter(|&number| number != primary) {
        until("replicas have deleted the keys of the dropped store", || cluster.0[number].keys().is_empty());
    }

    // The replica that became a primary has no replica of its own.
    let (_provider, store) = new_store(&format!("{}?timeout=4", cluster.0[(primary + 1) % 6].address()));
    write_all(&*store, 3);
    drop(provider);
    let alone = |server: &Server| {
        let info = server.text(&["INFO", "replication"]);
        info.contains("role:master") && info.contains("connected_slaves:0")
    };
    let successor = (0..6).filter(|&it| it != primary).find(|&it| alone(&cluster.0[it])).unwrap();
    cluster.0[successor].kill();
    let outcomes = (0..HOMES).map(|home| store.read(home * STEP, &mut [0; PAGE]));
    let why = lost(outcomes.collect());
    assert!(why.contains("(for 4 s)"), "{why}");
}

#[test]
fn restarted_primary_returns_no_old_pages() {
    let cluster = Cluster::start();
    let (_provider, store) = new_store(&cluster.address());
    write_all(&*store, 1);
    let primary = cluster.fullest();
    cluster.0[primary].signal("-STOP");
    write_all(&*store, 2);
    cluster.0[primary].signal("-CONT");
    for version in 3..8 {
        all_read_back(&*store, version - 1);
        write_all(&*store, version);
    }
    all_read_back(&*store, 7);
}

#[test]
fn slot_may_move_while_it_is_used() {
    let cluster = Cluster::start();
    let (_provider, store) = new_store(&cluster.address());
    store.write(0, &pages(0, 4 * PAGE, 1)).unwrap();
    let from = cluster.fullest();
    let key = &cluster.0[from].keys()[0];
    let slot = cluster.0[from].number(&["CLUSTER", "KEYSLOT", key]).to_string();
    let id = |number: usize| cluster.0[number].text(&["CLUSTER", "MYID"]);
    let primary = |number: &usize| cluster.0[*number].text(&["INFO", "replication"]).contains("role:master");
    let to = (0..6).filter(primary).find(|&number| number != from).unwrap();
    cluster.0[to].ask(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
    cluster.0[from].ask(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    reads_back(&*store, 0, 4 * PAGE, 1);
    let port = cluster.0[to].port.to_string();
    cluster.0[from].ask(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    // The old primary answers with ASK.
    reads_back(&*store, 0, 4 * PAGE, 1);
    store.write(0, &pages(0, 4 * PAGE, 2)).unwrap();
    reads_back(&*store, 0, 4 * PAGE, 2);
    // The old primary answers with MOVED.
    for number in [to, from] {
        cluster.0[number].ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &id(to)]);
    }
    reads_back(&*store, 0, 4 * PAGE, 2);
    store.write(0, &pages(0, 4 * PAGE, 3)).unwrap();
    reads_back(&*store, 0, 4 * PAGE, 3);
    assert_eq!(cluster.0[to].number(&["HLEN", key]), 4);
}
