//! The messages between program and agent: structures of integers and bytes with a fixed layout.

use largesse_store::{MappedSpan, StoreError};

/// Version of the protocol, which is increased with every change of this file. Both sides usually come from one build.
pub(crate) const VERSION: u64 = 0x6c61_7267_0000_0003;
/// Capacity in bytes of a text in a message.
const TEXT: usize = 200;

/// A type without padding for which every bit pattern is a value.
///
/// # Safety
/// The type consists of integers and arrays of them, is `#[repr(C)]`, and has no byte between its fields.
pub(crate) unsafe trait Plain: Copy + Default {
    /// Returns the bytes of the value.
    fn bytes(&self) -> &[u8] {
        // SAFETY: a plain value has no padding, and stays borrowed as long as the slice.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// Returns the value with these bytes, or `None` if their number is not the size of the type.
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut value = Self::default();
        let fits = bytes.len() == size_of::<Self>();
        // SAFETY: `bytes` is as long as the value, for which every bit pattern is valid.
        fits.then(|| unsafe {
            core::ptr::from_mut(&mut value)
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        })?;
        Some(value)
    }
}

/// A request of the program to the agent.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Request {
    pub(crate) verb: u32,
    /// Index of the store among the stores of this process; for requests about a queue, the number of the queue.
    pub(crate) store: u32,
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Position of the bytes in the memory of a queue; 0 in requests that are not for a queue.
    pub(crate) memory: u64,
}

pub(crate) const RESERVE: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const WRITE: u32 = 3;
pub(crate) const DISCARD: u32 = 4;
/// Frees the stores of this process.
pub(crate) const LEAVE: u32 = 5;
/// Asks where the span that contains `at` and the spans after it lie. The answer has a [`word`] for each, which is 0 if
/// the span is in none of the windows sent with the [`Welcome`].
pub(crate) const FIND: u32 = 6;
/// Opens the queue with the number `store`, with `at` bytes of memory. The answer is a word: the number of the
/// mechanism, or 0 if the store has no queues.
pub(crate) const OPEN: u32 = 7;
/// Closes the queue with the number `store`. None of its transfers may be in flight.
pub(crate) const CLOSE: u32 = 8;

/// Number of low bits of an encoded span that hold its offset. The number of the window is above them.
const WINDOW: u32 = 48;

/// Encodes the position of a span in a 64-bit word; `None` is 0.
pub(crate) fn word(found: Option<MappedSpan>) -> u64 {
    let word = found.and_then(|MappedSpan { window, at }| {
        let window = u16::try_from(window + 1).ok()?;
        (at >> WINDOW == 0).then_some(u64::from(window) << WINDOW | at)
    });
    word.unwrap_or(0)
}

/// Decodes the position of a span from a 64-bit word; 0 is `None`.
pub(crate) fn mapped_span(word: u64) -> Option<MappedSpan> {
    let window = usize::try_from(word >> WINDOW).ok()?.checked_sub(1)?;
    Some(MappedSpan { window, at: word & ((1 << WINDOW) - 1) })
}

/// The answer of the agent to a request.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Answer {
    verdict: u32,
    text_len: u32,
    number: u64,
    text: [u8; TEXT],
}

const DONE: u32 = 0;
const FULL: u32 = 1;
const LOST: u32 = 2;

impl Default for Answer {
    fn default() -> Answer {
        Answer { verdict: DONE, text_len: 0, number: 0, text: [0; TEXT] }
    }
}

impl Answer {
    /// Returns the answer for a failed request.
    pub(crate) fn refusing(error: StoreError) -> Answer {
        match error {
            StoreError::Full { wanted } => Answer { verdict: FULL, number: wanted, ..Answer::default() },
            other => Answer::lost(&other.to_string()),
        }
    }

    /// Returns the answer that reports the result of a call of a store.
    pub(crate) fn to(result: Result<(), StoreError>) -> Answer {
        result.map_or_else(Answer::refusing, |()| Answer::default())
    }

    /// Returns an answer that reports a lost store. The reason in `words` is cut to the capacity of the message.
    pub(crate) fn lost(words: &str) -> Answer {
        let (text_len, text) = text(words);
        Answer { verdict: LOST, text_len, text, ..Answer::default() }
    }

    /// Returns the result as the program sees it.
    pub(crate) fn result(&self) -> Result<(), StoreError> {
        match self.verdict {
            DONE => Ok(()),
            FULL => Err(StoreError::Full { wanted: self.number }),
            _ => Err(StoreError::Lost(words(self.text_len, &self.text))),
        }
    }
}

/// The first message of a connection, from the program.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Hello {
    pub(crate) version: u64,
    /// Upper bound of the offsets of pages, in bytes.
    pub(crate) bytes: u64,
    /// For a child about to be forked: the number of its parent's connection; otherwise 0.
    pub(crate) parent: u64,
    /// Number of stores that the child will share with its parent.
    pub(crate) frozen: u64,
    /// 1 if the child will also share the store that the parent writes, so that the parent needs a new one, too;
    /// otherwise 0.
    pub(crate) both: u64,
    /// Random number of the executed program: equal in all processes forked from it, different after `execve`.
    pub(crate) image: u64,
}

/// The answer to a [`Hello`]. It carries descriptors: of the page of `Alive`, of the request slots, and of the windows
/// that the program copies to and from. These are the windows in which [`FIND`] locates spans, or one window per new
/// store, the child's before the parent's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Welcome {
    pub(crate) version: u64,
    pub(crate) answer: Answer,
    pub(crate) connection: u64,
    /// 1 if spans are located in the windows by [`FIND`]; 0 if each window is one store.
    pub(crate) spans: u64,
    pub(crate) agent: u32,
    name_len: u32,
    name: [u8; TEXT],
}

impl Default for Welcome {
    fn default() -> Welcome {
        Welcome {
            version: VERSION,
            answer: Answer::default(),
            connection: 0,
            spans: 0,
            agent: 0,
            name_len: 0,
            name: [0; TEXT],
        }
    }
}

impl Welcome {
    /// Returns the answer for a process that is accepted. `called` is the store's name for people.
    pub(crate) fn to(connection: u64, called: &str, spans: bool) -> Welcome {
        let (name_len, name) = text(called);
        let (spans, agent) = (u64::from(spans), std::process::id());
        Welcome { connection, spans, agent, name_len, name, ..Welcome::default() }
    }

    /// Returns the answer for a process that is refused because of `error`.
    pub(crate) fn refusing(error: StoreError) -> Welcome {
        Welcome { answer: Answer::refusing(error), ..Welcome::default() }
    }

    pub(crate) fn name(&self) -> String {
        words(self.name_len, &self.name)
    }
}

// SAFETY: six u64.
unsafe impl Plain for Hello {}
// SAFETY: u64; 4 + 4 + 8 + 200 bytes; two u64; two u32 and 200 bytes: a multiple of 8 at each u64.
unsafe impl Plain for Welcome {}

fn text(words: &str) -> (u32, [u8; TEXT]) {
    let mut text = [0; TEXT];
    let len = words.floor_char_boundary(TEXT);
    text[..len].copy_from_slice(&words.as_bytes()[..len]);
    (u32::try_from(len).unwrap_or(0), text)
}

fn words(len: u32, text: &[u8; TEXT]) -> String {
    let len = usize::try_from(len).unwrap_or(0).min(TEXT);
    String::from_utf8_lossy(&text[..len]).into_owned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_transport() {
        let arrived = |error: StoreError| Answer::to(Err(error)).result().unwrap_err();
        assert_eq!(arrived(StoreError::Full { wanted: 7 }), StoreError::Full { wanted: 7 });
        let long = "ä".repeat(TEXT);
        assert_eq!(arrived(StoreError::Lost(long)), StoreError::Lost("ä".repeat(TEXT / 2)));
        let system = StoreError::System { call: "read", errno: libc::EIO };
        assert_eq!(arrived(system.clone()), StoreError::Lost(system.to_string()));
        assert_eq!(Answer::to(Ok(())).result(), Ok(()));
    }

    #[test]
    fn mapped_spans_fit_a_word() {
        let arrived = |window, at| mapped_span(word(Some(MappedSpan { window, at })));
        for (window, at) in [(0, 0), (3, 5 << 21), (65_534, (1 << 48) - 1)] {
            assert_eq!(arrived(window, at), Some(MappedSpan { window, at }));
        }
        assert_eq!((arrived(65_535, 0), arrived(0, 1 << 48), mapped_span(word(None))), (None, None, None));
    }

    #[test]
    fn messages_read_back_without_padding() {
        assert_eq!(size_of::<Welcome>(), 8 + (16 + TEXT) + 8 + 8 + 8 + TEXT);
        let sent = Welcome::to(5, "memory:", true);
        let got = Welcome::of(sent.bytes()).unwrap();
        assert_eq!((got.connection, got.spans, got.agent), (5, 1, std::process::id()));
        assert_eq!((got.version, got.name().as_str()), (VERSION, "memory:"));
        assert!(Welcome::of(&sent.bytes()[1..]).is_none());
    }
}
