//! What ranks tell each other besides pages.

/// A message, as the plug-in carries it (`plugin/plugin.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Message {
    pub(crate) verb: u32,
    /// The sender, when it was received.
    pub(crate) rank: u32,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// What a message says. Rank 0 asks, the others serve and answer with [`Verb::Done`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Verb {
    /// From a server, once: `count` has its stripes and, above 32 bits, its mark; `first` has the number of the file that they are in
    /// and, above 32 bits, the process that has it.
    Hello = 1,
    /// From a server that was asked (`Commit`, `Stop`): done if `first` is 1, refused if it is 0.
    Done,
    /// Have memory behind `count` stripes from `first` on.
    Commit,
    /// Give that memory back, which nobody but rank 0 and its program has used. No answer.
    Release,
    /// It is over.
    Stop,
}

/// Two numbers in one.
pub(crate) const fn joined(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// The two numbers in one.
fn halves(both: u64) -> (u32, u32) {
    let half = |it: u64| u32::try_from(it & u64::from(u32::MAX)).unwrap_or(0);
    (half(both >> 32), half(both))
}

/// What a server says first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) stripes: u32,
    /// What is written in the file.
    pub(crate) mark: u32,
    /// Which process has the file, and as which number.
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

    /// A server's first words; `None`: they are not.
    pub(crate) fn hello(&self) -> Option<Hello> {
        let ((mark, stripes), file) = (halves(self.count), halves(self.first));
        (self.verb() == Some(Verb::Hello)).then_some(Hello { stripes, mark, file })
    }

    /// `None`: from another version of this crate.
    pub(crate) fn verb(&self) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| *verb as u32 == self.verb)
    }
}
