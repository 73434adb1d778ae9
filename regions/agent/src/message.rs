//! What the two sides say to each other. All of it is numbers and bytes, at fixed places.

use largesse_store::{MappedSpan, StoreError};

/// Both sides are of one build, mostly; a change here is a new number.
pub(crate) const VERSION: u64 = 0x6c61_7267_0000_0002;
/// Room for words.
const TEXT: usize = 200;

/// Types for which every pattern of bits is a value, without padding.
///
/// # Safety
/// Only integers and arrays of them, `#[repr(C)]`, no byte between the fields.
pub(crate) unsafe trait Plain: Copy + Default {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: a plain value has no padding, and is borrowed for as long.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// The value with these bytes, if there are as many as it has.
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut value = Self::default();
        let fits = bytes.len() == size_of::<Self>();
        // SAFETY: as many bytes as the value has, and every pattern of bits is one.
        fits.then(|| unsafe {
            core::ptr::from_mut(&mut value)
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        })?;
        Some(value)
    }
}

/// What the program wants.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Request {
    pub(crate) verb: u32,
    /// The number of the space, of those that this process has.
    pub(crate) space: u32,
    pub(crate) at: u64,
    pub(crate) len: u64,
}

pub(crate) const RESERVE: u32 = 1;
pub(crate) const READ: u32 = 2;
pub(crate) const WRITE: u32 = 3;
pub(crate) const DISCARD: u32 = 4;
/// The process wants nothing of what its spaces hold any more.
pub(crate) const LEAVE: u32 = 5;
/// Where the span that `at` is in and those after it lie, a [`word`] for each, if that is in one of the windows that came with the
/// [`Welcome`].
pub(crate) const FIND: u32 = 6;

/// Bits of a place below the number of its window.
const WINDOW: u32 = 48;

/// A place in a word; 0: nowhere.
pub(crate) fn word(found: Option<MappedSpan>) -> u64 {
    let word = found.and_then(|MappedSpan { window, at }| {
        let window = u16::try_from(window + 1).ok()?;
        (at >> WINDOW == 0).then_some(u64::from(window) << WINDOW | at)
    });
    word.unwrap_or(0)
}

/// The place that a word says.
pub(crate) fn place(word: u64) -> Option<MappedSpan> {
    let window = usize::try_from(word >> WINDOW).ok()?.checked_sub(1)?;
    Some(MappedSpan { window, at: word & ((1 << WINDOW) - 1) })
}

/// How it went.
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
    /// It did not go well.
    pub(crate) fn refusing(error: StoreError) -> Answer {
        match error {
            StoreError::Full { wanted } => Answer { verdict: FULL, number: wanted, ..Answer::default() },
            other => Answer::lost(&other.to_string()),
        }
    }

    /// Of a store.
    pub(crate) fn to(result: Result<(), StoreError>) -> Answer {
        result.map_or_else(Answer::refusing, |()| Answer::default())
    }

    /// A trouble in words.
    pub(crate) fn lost(words: &str) -> Answer {
        let (text_len, text) = text(words);
        Answer { verdict: LOST, text_len, text, ..Answer::default() }
    }

    /// What the program makes of it.
    pub(crate) fn result(&self) -> Result<(), StoreError> {
        match self.verdict {
            DONE => Ok(()),
            FULL => Err(StoreError::Full { wanted: self.number }),
            _ => Err(StoreError::Lost(words(self.text_len, &self.text))),
        }
    }
}

/// The first words of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Hello {
    pub(crate) version: u64,
    /// Pages will lie below so many bytes.
    pub(crate) bytes: u64,
    /// For a child that is about to be forked: the connection of its parent, else 0.
    pub(crate) parent: u64,
    /// How many spaces the child shares with it.
    pub(crate) frozen: u64,
    /// 1: the parent's own one is among them, so that it needs a new one as well.
    pub(crate) both: u64,
    /// The same in all processes that were forked from one that executed a program, and in no other.
    pub(crate) image: u64,
}

/// The answer, with descriptors: the page that says whether the agent lives, the slots, and windows where
/// the program copies by itself: those in which spans are [found](FIND), or each new space: the child's or only one, then the parent's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Welcome {
    pub(crate) version: u64,
    pub(crate) answer: Answer,
    pub(crate) connection: u64,
    /// 1: spans are to be found in the windows.
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
    /// To a process that is taken in; `called` is the store's name as people may read it.
    pub(crate) fn to(connection: u64, called: &str, spans: bool) -> Welcome {
        let (name_len, name) = text(called);
        let (spans, agent) = (u64::from(spans), std::process::id());
        Welcome { connection, spans, agent, name_len, name, ..Welcome::default() }
    }

    /// To one that is not.
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
    fn errors_arrive_as_they_were_or_in_words() {
        let arrived = |error: StoreError| Answer::to(Err(error)).result().unwrap_err();
        assert_eq!(arrived(StoreError::Full { wanted: 7 }), StoreError::Full { wanted: 7 });
        let long = "ä".repeat(TEXT);
        assert_eq!(arrived(StoreError::Lost(long)), StoreError::Lost("ä".repeat(TEXT / 2)));
        let system = StoreError::System { call: "read", errno: libc::EIO };
        assert_eq!(arrived(system.clone()), StoreError::Lost(system.to_string()));
        assert_eq!(Answer::to(Ok(())).result(), Ok(()));
    }

    #[test]
    fn places_arrive_as_they_were_if_a_word_has_room_for_them() {
        let arrived = |window, at| place(word(Some(MappedSpan { window, at })));
        for (window, at) in [(0, 0), (3, 5 << 21), (65_534, (1 << 48) - 1)] {
            assert_eq!(arrived(window, at), Some(MappedSpan { window, at }));
        }
        assert_eq!((arrived(65_535, 0), arrived(0, 1 << 48), place(word(None))), (None, None, None));
    }

    #[test]
    fn messages_have_no_padding_and_read_back() {
        assert_eq!(size_of::<Welcome>(), 8 + (16 + TEXT) + 8 + 8 + 8 + TEXT);
        let sent = Welcome::to(5, "memory:", true);
        let got = Welcome::of(sent.bytes()).unwrap();
        assert_eq!((got.connection, got.spans, got.agent), (5, 1, std::process::id()));
        assert_eq!((got.version, got.name().as_str()), (VERSION, "memory:"));
        assert!(Welcome::of(&sent.bytes()[1..]).is_none());
    }
}
