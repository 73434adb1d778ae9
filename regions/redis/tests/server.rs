//! A single server: pages read back as they were written, and failures are reported with their reason.

mod common;

use common::*;
use largesse_store::{PageStore, StoreError, StoreProvider};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Number of bytes from the start of one home to the start of the next.
const STEP: u64 = HOME as u64;

#[test]
fn writes_of_any_size_read_back_across_homes() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    for (at, len) in [(0, PAGE), (8 * PAGE as u64, 16 * PAGE), (STEP, 2 << 20), (3 * STEP - 8192, 4 << 20)] {
        store.reserve(at, len as u64).unwrap();
        store.write(at, &pages(at, len, 1)).unwrap();
        store.write(at, &pages(at, len, 2)).unwrap();
        reads_back(&*store, at, len, 2);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { page: usize, count: usize, version: u8 },
    Read { page: usize, count: usize },
    Discard { page: usize, count: usize },
}

fn step() -> impl Strategy<Value = Step> {
    // Pages around the boundary of two homes.
    let place = || (500_usize..524, 1_usize..12);
    prop_oneof![
        (place(), 1_u8..60).prop_map(|((page, count), version)| Step::Write { page, count, version }),
        place().prop_map(|(page, count)| Step::Read { page, count }),
        place().prop_map(|(page, count)| Step::Discard { page, count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_calls_equals_that_on_an_array(steps in prop::collection::vec(step(), 1..60)) {
        let server = Server::start(&[]);
        let (_provider, store) = new_store(&server.address());
        let mut model: Vec<Option<Vec<u8>>> = vec![None; 540];
        for step in steps {
            match step {
                Step::Write { page, count, version } => {
                    let (at, len) = ((page * PAGE) as u64, count * PAGE);
                    store.write(at, &pages(at, len, version)).unwrap();
                    for (number, bytes) in (page..).zip(pages(at, len, version).chunks(PAGE)) {
                        model[number] = Some(bytes.to_vec());
                    }
                }
                Step::Read { page, count } => {
                    let mut bytes = vec![0; count * PAGE];
                    store.read((page * PAGE) as u64, &mut bytes).unwrap();
                    for (number, bytes) in (page..).zip(bytes.chunks(PAGE)) {
                        if let Some(want) = &model[number] {
                            prop_assert!(bytes == want, "page {number}");
                        }
                    }
                }
                Step::Discard { page, count } => {
                    store.discard((page * PAGE) as u64, (count * PAGE) as u64);
                    model[page..page + count].fill(None);
                }
            }
            let there: i64 = server.keys().iter().map(|key| server.number(&["HLEN", key])).sum();
            prop_assert_eq!(there, model.iter().flatten().map(|_| 1).sum::<i64>(), "discarded pages are gone");
        }
    }
}

#[test]
fn stores_are_separate_have_a_lease_and_are_deleted_when_dropped() {
    let server = Server::start(&[]);
    let (provider, one) = new_store(&format!("{}?lease=600", server.address()));
    let other = provider.create().unwrap();
    assert_eq!(server.keys().len(), 0, "the trial page is deleted");
    one.write(0, &pages(0, PAGE, 1)).unwrap();
    other.write(0, &pages(0, PAGE, 2)).unwrap();
    reads_back(&*one, 0, PAGE, 1);
    reads_back(&*other, 0, PAGE, 2);
    for key in server.keys() {
        assert!((500..=600).contains(&server.number(&["TTL", &key])), "{key}");
    }
    drop(one);
    reads_back(&*other, 0, PAGE, 2);
    drop(other);
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn threads_use_a_store_at_once() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &*store;
            scope.spawn(move || {
                let at = thread * 7 * PAGE as u64; // the same home
                for version in 0..40 {
                    store.write(at, &pages(at, 7 * PAGE, version)).unwrap();
                    reads_back(store, at, 7 * PAGE, version);
                    if version % 8 == 7 {
                        store.discard(at, 7 * PAGE as u64);
                    }
                }
            });
        }
    });
}

#[test]
fn full_server_refuses_reservations_but_not_reserved_writes() {
    let server = Server::start(&["--maxmemory", "64mb"]);
    let (_provider, store) = new_store(&server.address());
    let mut reserved = 0;
    while store.reserve(reserved, STEP).is_ok() {
        reserved += STEP;
    }
    assert!(reserved >= 16 * STEP, "{reserved} of 64 MiB");
    assert_eq!(store.reserve(reserved, STEP), Err(StoreError::Full { wanted: STEP }));
    for at in (0..reserved).step_by(HOME) {
        store.write(at, &pages(at, HOME, 3)).unwrap();
    }
    assert_eq!(store.reserve(reserved, STEP), Err(StoreError::Full { wanted: STEP }), "after all writes");
    store.discard(0, STEP);
    store.reserve(reserved, STEP).unwrap();
    reads_back(&*store, STEP, HOME, 3);
}

#[test]
fn server_filled_by_other_clients_is_lost_with_its_reason() {
    let server = Server::start(&["--maxmemory", "64mb"]);
    let (_provider, store) = new_store(&server.address());
    store.reserve(0, 8 * STEP).unwrap();
    for number in 0..9 {
        server.ask(&["SET", &format!("key of another client {number}"), &"x".repeat(4 << 20)]);
    }
    let homes = (0..8 * STEP).step_by(HOME);
    let outcomes = homes.map(|at| store.write(at, &pages(at, HOME, 1)));
    let why = lost(outcomes.collect());
    assert!(why.contains("it is full"), "{why}");
}

#[test]
fn evicting_server_is_refused_before_and_during_use() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let why = open(&server.address()).unwrap_err().to_string();
    assert!(why.contains("allkeys-lru") && why.contains("CONFIG SET maxmemory-policy noeviction"), "{why}");
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let (_provider, store) = new_store(&server.address());
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert!(lost(store.reserve(0, STEP)).contains("volatile-ttl"));
    assert!(lost(store.read(0, &mut [0; PAGE])).contains("volatile-ttl"));
}

#[test]
fn leases_are_renewed_and_the_policy_is_checked_during_use() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&format!("{}?lease=10", server.address()));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    let left = || server.number(&["PTTL", &server.keys()[0]]);
    until("the lease runs", || left() < 8500);
    until("the lease is renewed", || left() > 9000);
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
    until("the policy is seen", || store.read(0, &mut [0; PAGE]).is_err());
    assert!(lost(store.read(0, &mut [0; PAGE])).contains("allkeys-random"));
}

#[test]
fn deleted_pages_are_lost_and_never_zeros() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    store.write(0, &pages(0, 8 * PAGE, 1)).unwrap();
    server.ask(&["FLUSHALL"]);
    store.write(0, &pages(0, PAGE, 2)).unwrap();
    reads_back(&*store, 0, PAGE, 2);
    let why = lost(store.read(PAGE as u64, &mut [0; PAGE]));
    assert!(why.contains("another client deleted keys") && why.contains("lease of 3600 s"), "{why}");
}

#[test]
fn field_that_is_shorter_than_a_page_is_lost() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    store.write(0, &pages(0, 8 * PAGE, 1)).unwrap();
    server.ask(&["HSET", &server.keys()[0], "5", &"x".repeat(PAGE - 1)]);
    let why = lost(store.read(0, &mut [0; 8 * PAGE]));
    assert!(why.contains("a field does not have the size of a page"), "{why}");
}

/// If the connection is cut in the middle of a page, in either direction, the request is repeated on a new connection.
#[test]
fn transfer_that_is_cut_in_the_middle_is_repeated() {
    let server = Server::start(&[]);
    let proxy = Proxy::to(server.port);
    let (_provider, store) = new_store(&proxy.address());
    store.write(0, &pages(0, HOME, 1)).unwrap();
    for version in 2..5 {
        proxy.cut_after(100_000);
        store.write(0, &pages(0, HOME, version)).unwrap();
        assert!(proxy.was_cut(), "nothing was cut");
        proxy.cut_after(100_000);
        reads_back(&*store, 0, HOME, version);
        assert!(proxy.was_cut(), "nothing was cut");
    }
}

#[test]
fn server_that_restarted_without_its_data_is_lost() {
    let mut server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    // A restart shows in the uptime, which counts whole seconds and is compared with a tolerance of two.
    until("the server is three seconds old", || {
        let info = server.text(&["INFO", "server"]);
        let uptime = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
        uptime.unwrap().trim().parse::<u32>().unwrap() >= 3
    });
    server.kill();
    let _second = Server::start_at(server.port, &[]);
    store.write(STEP, &pages(STEP, PAGE, 1)).unwrap();
    let why = lost(store.read(0, &mut [0; PAGE]));
    assert!(why.contains("restarted and no longer has its data"), "{why}");
}

#[test]
fn server_that_pauses_is_awaited_and_one_without_answer_is_lost() {
    let server = Server::start(&[]);
    let (_patient, store) = new_store(&format!("{}?timeout=60", server.address()));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    server.signal("-STOP");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The length of the interruption is what is tested.
            std::thread::sleep(Duration::from_millis(1200));
            server.signal("-CONT");
        });
        store.write(0, &pages(0, HOME, 2)).unwrap();
    });
    store.write(0, &pages(0, PAGE, 3)).unwrap();
    reads_back(&*store, 0, PAGE, 3);
    reads_back(&*store, 0, PAGE, 3);
    let (_provider, store) = new_store(&format!("{}?timeout=4", server.address()));
    server.signal("-STOP");
    let began = Instant::now();
    let why = lost(store.read(0, &mut [0; PAGE]));
    server.signal("-CONT");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(why.contains("no answer (for 4 s)"), "{why}");
}

#[test]
fn message_names_the_server_that_was_killed() {
    let mut server = Server::start(&[]);
    let (_provider, store) = new_store(&format!("{}?timeout=4", server.address()));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    server.kill();
    let why = lost(store.write(0, &pages(0, PAGE, 2)));
    assert!(why.contains(&server.address()) && why.contains("refused"), "{why}");
}

#[test]
fn replica_has_every_page_and_a_primary_without_one_continues() {
    let primary = Server::start(&[]);
    let replica = Server::start(&[
        "--replicaof",
        &format!("127.0.0.1 {}", primary.port),
        "--repl-diskless-sync-delay",
        "0",
    ]);
    let info = |server: &Server| -> String {
        redis::from_redis_value(server.ask(&["INFO", "replication"])).unwrap()
    };
    until("the replica is up to date", || info(&primary).contains("state=online"));
    let why = open(&replica.address()).unwrap_err().to_string();
    assert!(why.contains("name its primary"), "{why}");

    let (_provider, store) = new_store(&format!("{}?timeout=4", primary.address()));
    store.write(0, &pages(0, PAGE, 1)).unwrap();
    assert_eq!(replica.number(&["HLEN", &replica.keys()[0]]), 1, "when the write has returned");
    replica.signal("-STOP");
    let why = lost(store.write(0, &pages(0, PAGE, 2)));
    replica.signal("-CONT");
    assert!(why.contains("no replica has confirmed the write"), "{why}");
    drop(replica);
    until("the primary notices", || info(&primary).contains("connected_slaves:0"));
    store.write(0, &pages(0, PAGE, 3)).unwrap();
    reads_back(&*store, 0, PAGE, 3);

    let why = open(&format!("{}?timeout=4&replicas=1", primary.address())).unwrap_err().to_string();
    assert!(why.contains("no replica has confirmed the write"), "{why}");
}
