//! Defines the messages between ranks.

/// A message between ranks, in the layout of the plug-in (`plugin/plugin.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Message {
    pub(crate) verb: u32,
    /// Rank of the sender, set on receipt.
    pub(crate) rank: u32,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// The kinds of messages. Rank 0 sends requests, and the servers answer with [`Verb::Done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Verb {
    /// Announces a server when it starts. `count` has the number of its stripes and, in the upper 32 bits, its mark.
    /// `first` has the descriptor of its memory file and, in the upper 32 bits, the number of the process that has the
    /// descriptor.
    Hello = 1,
    /// Answers `Commit` or `Stop`: done if `first` is 1, refused if it is 0.
    Done,
    /// Asks a server to commit memory to the `count` stripes from `first` on.
    Commit,
    /// Asks a server to free the memory of the `count` stripes from `first` on, which only rank 0 and its program have
    /// used. There is no answer.
    Release,
    /// Asks a server to stop.
    Stop,
}

/// Joins two 32-bit numbers into one of 64 bits.
pub(crate) const fn joined(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// Splits a number into its upper and lower 32 bits.
fn halves(both: u64) -> (u32, u32) {
    let half = |it: u64| u32::try_from(it & u64::from(u32::MAX)).unwrap_or(0);
    (half(both >> 32), half(both))
}

/// The contents of [`Verb::Hello`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) stripes: u32,
    /// Random number that the server wrote at offset [`MARK`](crate::serve::MARK) of its memory file.
    pub(crate) mark: u32,
    /// Number of the process that has the memory file, and the file's descriptor there.
    pub(crate) file: (u32, u32),
}

impl Verb {
    const ALL: [Verb; 5] = [Verb::Hello, Verb::Done, Verb::Commit, Verb::Release, Verb::Stop];
}

impl Message {
    pub(crate) const fn new(verb: Verb, first: u64, count: u64) -> Message {
        Message { verb: verb as u32, rank: 0, first, count }
    }

    pub(crate) const fn done(well: bool) -> Message {
        Message::new(Verb::Done, well as u64, 0)
    }

    /// Returns the contents of a [`Verb::Hello`]; `None` if the message is another one.
    pub(crate) fn hello(&self) -> Option<Hello> {
        let ((mark, stripes), file) = (halves(self.count), halves(self.first));
        (self.verb() == Some(Verb::Hello)).then_some(Hello { stripes, mark, file })
    }

    /// Returns the kind of the message; `None` if it is from another version of this crate.
    pub(crate) fn verb(&self) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| *verb as u32 == self.verb)
    }
}
