//! A queue sends requests without waiting for answers, and reports each transfer's own result.

mod common;
#[path = "../../store/tests/common/queue.rs"]
mod queue_checks;

use common::*;
use largesse_store::{Direction, Mechanism, ProvidedStore, QueueBytes, TransferQueue};
use queue_checks::{
    DEPTH, PAGES, fill_memory, finish, memory_is, moves_the_right_bytes, reaps_nothing_when_idle,
    refuses_more_than_its_depth, results, start,
};

fn queue(store: &dyn ProvidedStore) -> Box<dyn TransferQueue> {
    assert!(store.queue_threads() > 1);
    store.open_queue_over(QueueBytes::new(PAGES * PAGE).unwrap(), DEPTH).expect("a store with queues")
}

#[test]
fn transfers_move_the_right_bytes() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    let mut queue = queue(&*store);
    assert_eq!(queue.mechanism(), Mechanism::RedisPipelines);
    // In one home, over the boundary of two, and each in another one.
    for step in [4, 170, 700] {
        moves_the_right_bytes(&mut *queue, step);
    }
    refuses_more_than_its_depth(&mut *queue);
    reaps_nothing_when_idle(&mut *queue);
}

#[test]
fn all_requests_are_sent_before_the_first_answer() {
    let server = Server::start(&[]);
    let proxy = Proxy::to(server.port);
    let (_provider, store) = new_store(&proxy.address());
    let mut queue = queue(&*store);
    fill_memory(&mut *queue, 0..DEPTH, |page| u8::try_from(page).unwrap());
    (0..DEPTH).for_each(|page| start(&mut *queue, Direction::Write, page as u64, page..page + 1));
    finish(&mut *queue);
    let before = proxy.requests("HMGET");
    server.signal("-STOP");
    let memory = |page| DEPTH + page..DEPTH + page + 1;
    (0..DEPTH).for_each(|page| start(&mut *queue, Direction::Read, page as u64, memory(page)));
    queue.flush();
    until("every read has left for the server, which answers none", || {
        proxy.requests("HMGET") - before == DEPTH
    });
    server.signal("-CONT");
    assert_eq!(finish(&mut *queue).len(), DEPTH);
    assert!((0..DEPTH).all(|page| memory_is(&mut *queue, DEPTH + page, u8::try_from(page).unwrap())));
}

#[test]
fn each_transfer_has_its_own_result() {
    let server = Server::start(&[]);
    let (_provider, store) = new_store(&server.address());
    let mut queue = queue(&*store);
    (0..6).for_each(|page| start(&mut *queue, Direction::Write, page, 0..1));
    finish(&mut *queue);
    let key = &server.keys()[0];
    server.ask(&["HDEL", key, "2"]);
    server.ask(&["HSET", key, "4", "short"]);
    (0..6).for_each(|page| start(&mut *queue, Direction::Read, page, 1..2));
    for (page, result) in results(&mut *queue) {
        match page {
            2 => assert!(lost(result).contains("another client deleted keys")),
            4 => assert!(lost(result).contains("a field does not have the size of a page")),
            _ => result.unwrap(),
        }
    }
}

/// If a connection is lost with transfers in flight, the queue opens another one, and repeats the transfers on it.
#[test]
fn lost_connection_repeats_all_its_transfers() {
    let server = Server::start(&[]);
    let proxy = Proxy::to(server.port);
    let (_provider, store) = new_store(&proxy.address());
    let mut queue = queue(&*store);
    for round in 1..6_u8 {
        fill_memory(&mut *queue, 0..32, |page| u8::try_from(page).unwrap() ^ round);
        proxy.cut_after(70_000);
        (0..DEPTH).for_each(|run| start(&mut *queue, Direction::Write, run as u64 * 4, run * 4..run * 4 + 4));
        finish(&mut *queue);
        assert!(proxy.was_cut(), "nothing was cut");
        proxy.cut_after(70_000);
        let memory = |run| 32 + run * 4..36 + run * 4;
        (0..DEPTH).for_each(|run| start(&mut *queue, Direction::Read, run as u64 * 4, memory(run)));
        finish(&mut *queue);
        assert!(proxy.was_cut(), "nothing was cut");
        let byte = |page: usize| u8::try_from(page).unwrap() ^ round;
        assert!((0..32).all(|page| memory_is(&mut *queue, 32 + page, byte(page))), "round {round}");
    }
}

#[test]
fn death_of_the_server_ends_all_transfers_with_its_name() {
    let mut server = Server::start(&[]);
    let (_provider, store) = new_store(&format!("{}?timeout=2", server.address()));
    let mut queue = queue(&*store);
    moves_the_right_bytes(&mut *queue, 4);
    server.signal("-STOP");
    (0..DEPTH).for_each(|page| start(&mut *queue, Direction::Write, page as u64, page..page + 1));
    queue.flush();
    server.kill();
    let ended = results(&mut *queue);
    assert_eq!(ended.len(), DEPTH);
    for (_, result) in ended {
        let why = lost(result);
        assert!(why.contains(&server.address()) && why.contains("(for 2 s)"), "{why}");
    }
}
