//! The tests of a single server once more: each read and write is made as many transfers of a queue.

#[path = "server.rs"]
mod server;
