//! What the two sides say to each other. All of it is numbers and bytes, at fixed places.

use largesse_pager::StoreError;

/// Both sides are of one build, mostly; a change here is a new number.
pub(crate) const VERSION: u64 = 0x6c61_7267_0000_0001;
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
    /// Of a store.
    pub(crate) fn to(result: Result<(), StoreError>) -> Answer {
        match result {
            Ok(()) => Answer::default(),
            Err(StoreError::Full { wanted }) => Answer { verdict: FULL, number: wanted, ..Answer::default() },
            Err(other) => Answer::lost(&other.to_string()),
        }
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

/// The answer, with descriptors: the page that says whether the agent lives, the slots, and where
/// the program copies by itself the new spaces: the child's or only one, then the parent's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Welcome {
    pub(crate) version: u64,
    pub(crate) answer: Answer,
    pub(crate) connection: u64,
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
            agent: 0,
            name_len: 0,
            name: [0; TEXT],
        }
    }
}

impl Welcome {
    /// To a process that is taken in; `called` is the store's name as people may read it.
    pub(crate) fn to(connection: u64, called: &str) -> Welcome {
        let (name_len, name) = text(called);
        Welcome { connection, agent: std::process::id(), name_len, name, ..Welcome::default() }
    }

    /// To one that is not.
    pub(crate) fn refusing(error: StoreError) -> Welcome {
        Welcome { answer: Answer::to(Err(error)), ..Welcome::default() }
    }

    pub(crate) fn name(&self) -> String {
        words(self.name_len, &self.name)
    }
}

// SAFETY: six u64.
unsafe impl Plain for Hello {}
// SAFETY: u64; 4 + 4 + 8 + 200 bytes; u64; two u32 and 200 bytes: a multiple of 8 at each u64.
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
    fn messages_have_no_padding_and_read_back() {
        assert_eq!(size_of::<Welcome>(), 8 + (16 + TEXT) + 8 + 8 + TEXT);
        let sent = Welcome::to(5, "memory:");
        let got = Welcome::of(sent.bytes()).unwrap();
        assert_eq!((got.connection, got.agent), (5, std::process::id()));
        assert_eq!((got.version, got.name().as_str()), (VERSION, "memory:"));
        assert!(Welcome::of(&sent.bytes()[1..]).is_none());
    }
}
