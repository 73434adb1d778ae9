//! Transfers to and from files by `io_uring(7)`, several at a time and past the page cache.
//!
//! This crate makes the system calls by its own instructions, because a filter for the program's system calls traps
//! those that the C library makes (`io_uring_setup` among them).
//!
//! A transfer whose pages lie in several layers (see [`Overlay`]) is made in pieces, one for each run
//! of pages in one layer. A transfer ends when its last piece has.

use super::layer::{File, MAX_IDLE};
use crate::queue_bytes::QueueBytes;
use crate::split::SplitTransfers;
use crate::transfer::{Completion, Direction, Mechanism, Transfer, TransferQueue};
use crate::{Overlay, StoreError};
use core::ffi::c_int;
use core::ops::Range;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

/// Index of the registered buffer, which holds the memory of all transfers.
const BUFFER: u16 = 0;

/// A queue of transfers on an io_uring of its own.
pub(super) struct UringQueue {
    /// The ring. It is declared, and so dropped, before `memory`, which it uses.
    ring: IoUring,
    overlay: Arc<Overlay<File>>,
    memory: QueueBytes,
    /// The error with which the kernel refused to pin the queue's memory once; `None` if the memory stays pinned. With
    /// an error, the kernel pins memory for each transfer.
    unregistered: Option<c_int>,
    transfers: SplitTransfers,
    pieces: Vec<Option<FilePart>>,
    free_pieces: Vec<usize>,
    /// Indices of pieces for which the submission queue had no room.
    waiting: VecDeque<usize>,
}

/// A piece of a transfer, which lies in one file.
#[derive(Debug)]
struct FilePart {
    /// Index of the transfer in `transfers`.
    of: usize,
    file: Arc<File>,
    at: u64,
    /// Position of the next byte in the queue's memory.
    memory: usize,
    len: usize,
    /// Number of bytes of the piece that were transferred until now.
    done: usize,
    /// Number of completions in a row that transferred nothing.
    idle: u8,
}

impl std::fmt::Debug for UringQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringQueue").field("transfers", &self.transfers).finish_non_exhaustive()
    }
}

impl UringQueue {
    /// Makes a queue of `depth` transfers with `bytes` bytes of memory. Returns the kernel's error if io_uring is
    /// absent, switched off (`kernel.io_uring_disabled`) or forbidden (seccomp), and `EOPNOTSUPP` before Linux 5.11,
    /// whose io_uring cannot wait for a limited time.
    pub(super) fn open(overlay: &Arc<Overlay<File>>, bytes: usize, depth: usize) -> io::Result<UringQueue> {
        let memory = QueueBytes::new(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let entries = u32::try_from(depth.next_power_of_two()).unwrap_or(u32::MAX);
        let ring = IoUring::builder().dontfork().setup_clamp().build(entries)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let buffer = libc::iovec { iov_base: memory.address(0).cast(), iov_len: memory.len() };
        // SAFETY: the memory outlives the ring, with which its registration ends: the queue's fields are dropped in the
        // order of their declaration, `ring` before `memory`. The bytes stay at their address when the queue is moved,
        // and are only accessed by `QueueBytes::bytes`.
        // It fails where `RLIMIT_MEMLOCK` is small: each transfer then pins its pages by itself.
        let registered = unsafe { ring.submitter().register_buffers(&[buffer]) };
        let unregistered = registered.err().map(|error| error.raw_os_error().unwrap_or(libc::ENOMEM));
        Ok(UringQueue {
            ring,
            overlay: Arc::clone(overlay),
            memory,
            unregistered,
            transfers: SplitTransfers::new(depth),
            pieces: Vec::with_capacity(depth),
            free_pieces: Vec::with_capacity(depth),
            waiting: VecDeque::with_capacity(depth),
        })
    }

    fn add_piece(&mut self, piece: FilePart) {
        let index = self.free_pieces.pop().unwrap_or_else(|| {
            self.pieces.push(None);
            self.pieces.len() - 1
        });
        self.transfers.add_piece(piece.of);
        self.pieces[index] = Some(piece);
        self.waiting.push_back(index);
    }

    /// Moves waiting pieces to the submission queue, as far as it has room.
    fn push_waiting(&mut self) {
        while let Some(&index) = self.waiting.front() {
            let Some(entry) = self.entry(index) else {
                self.waiting.pop_front();
                continue;
            };
            // SAFETY: the memory is the queue's, which waits for its transfers before it ends; the piece keeps its
            // file.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn entry(&self, index: usize) -> Option<squeue::Entry> {
        let piece = self.pieces[index].as_ref()?;
        let direction = self.transfers.get(piece.of)?.direction;
        let fd = types::Fd(piece.file.descriptor());
        let memory = self.memory.address(piece.memory + piece.done);
        let len = u32::try_from(piece.len - piece.done).unwrap_or(u32::MAX);
        let offset = piece.at + piece.done as u64;
        let entry = match (direction, self.unregistered.is_none()) {
            (Direction::Read, true) => opcode::ReadFixed::new(fd, memory, len, BUFFER).offset(offset).build(),
            (Direction::Read, false) => opcode::Read::new(fd, memory, len).offset(offset).build(),
            (Direction::Write, true) => {
                opcode::WriteFixed::new(fd, memory, len, BUFFER).offset(offset).build()
            }
            (Direction::Write, false) => opcode::Write::new(fd, memory, len).offset(offset).build(),
        };
        Some(entry.user_data(index as u64))
    }

    /// Handles the kernel's answer for a piece: starts the transfer of its remaining bytes, or ends the piece.
    fn answered(&mut self, index: usize, answer: i32) {
        let Some(piece) = self.pieces.get_mut(index).and_then(Option::as_mut) else { return };
        let Some(transfer) = self.transfers.get(piece.of) else { return };
        let call = match transfer.direction {
            Direction::Read => "io_uring read",
            Direction::Write => "io_uring write",
        };
        let ended = match usize::try_from(answer) {
            Ok(0) if piece.idle == MAX_IDLE => {
                Some(Err(StoreError::Short { call, wanted: piece.len, done: piece.done }))
            }
            Ok(more) => {
                piece.done += more;
                piece.idle = if more == 0 { piece.idle + 1 } else { 0 };
                (piece.done >= piece.len).then_some(Ok(()))
            }
            Err(_) if [libc::EINTR, libc::EAGAIN].contains(&-answer) => None,
            Err(_) => Some(Err(StoreError::System { call, errno: -answer })),
        };
        let Some(result) = ended else { return self.waiting.push_back(index) };
        piece.file.uncache(piece.at, piece.len);
        let of = piece.of;
        self.pieces[index] = None;
        self.free_pieces.push(index);
        self.piece_ended(of, result);
    }

    fn piece_ended(&mut self, of: usize, result: Result<(), StoreError>) {
        if let Some(transfer) = self.transfers.piece_ended(of, result)
            && transfer.direction == Direction::Write
        {
            self.overlay.written(transfer.at, transfer.memory.len());
        }
    }

    /// Submits all waiting pieces to the kernel.
    fn submit(&mut self) {
        self.push_waiting();
        if !self.ring_is_idle() {
            // The kernel keeps what it did not take now in the queue, and is given it again the next time.
            let _ = self.ring.submit();
        }
    }

    /// Handles the completions that the kernel has added to the ring.
    fn collect(&mut self) {
        loop {
            let Some(entry) = self.ring.completion().next() else { break };
            self.answered(usize::try_from(entry.user_data()).unwrap_or(usize::MAX), entry.result());
        }
    }

    /// Submits all waiting pieces to the kernel, and waits for a completion, for at most the time `wait`.
    fn wait(&mut self, wait: Duration) {
        self.push_waiting();
        let time = types::Timespec::from(wait);
        // Interrupted, or nothing ended in time: the caller tries again.
        let _ = self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time));
    }

    /// Returns whether the kernel has taken all entries of the submission queue, and has no work left for this thread.
    fn ring_is_idle(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.is_empty() && !queue.cq_overflow() && !queue.taskrun()
    }
}

impl TransferQueue for UringQueue {
    fn mechanism(&self) -> Mechanism {
        Mechanism::IoUring
    }

    fn refusal(&self) -> Option<c_int> {
        self.unregistered
    }

    fn depth(&self) -> usize {
        self.transfers.depth()
    }

    fn in_flight(&self) -> usize {
        self.transfers.in_flight()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.memory.bytes(range) }
    }

    fn start(&mut self, transfer: Transfer) {
        let Transfer { direction, memory, at, .. } = transfer.clone();
        let Some(of) = self.transfers.begin(transfer) else { return };
        let (mut done, mut split) = (0, Ok(()));
        while done < memory.len() && split.is_ok() {
            let (at, left) = (at + done as u64, memory.len() - done);
            let target = match direction {
                Direction::Read => Ok(self.overlay.source(at, left)),
                Direction::Write => self.overlay.target(at, left).map(|file| (file, left)),
            };
            split = target.map(|(file, len)| {
                let memory = memory.start + done;
                self.add_piece(FilePart { of, file, at, memory, len, done: 0, idle: 0 });
                done += len;
            });
        }
        self.piece_ended(of, split);
    }

    fn flush(&mut self) {
        self.submit();
    }

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        self.submit();
        self.collect();
        if self.transfers.none_ended() && self.in_flight() > 0 && !wait.is_zero() {
            self.wait(wait);
            self.collect();
        }
        self.transfers.drain(done);
    }

    fn descriptor(&self) -> Option<c_int> {
        Some(self.ring.as_raw_fd())
    }
}

impl Drop for UringQueue {
    /// Waits for the transfers in flight, because they use the queue's memory.
    fn drop(&mut self) {
        while self.transfers.unended() > 0 {
            self.wait(Duration::from_millis(100));
            self.collect();
        }
    }
}
