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
    /// From a server, once: stripe 0 is at byte `first` of its memory, which has `count` stripes.
    Hello = 1,
    /// From a server that was asked (`Commit`, `Stop`): done if `first` is 1, refused if it is 0.
    Done,
    /// Have memory behind `count` stripes from `first` on.
    Commit,
    /// Give that memory back. No answer.
    Release,
    /// It is over.
    Stop,
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

    /// `None`: from another version of this crate.
    pub(crate) fn verb(&self) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| *verb as u32 == self.verb)
    }
}
