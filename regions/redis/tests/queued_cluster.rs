//! The tests of a cluster once more: each read and write is made as many transfers of a queue.

#[path = "cluster.rs"]
mod cluster;
