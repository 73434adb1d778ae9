//! Where in this process the spans of a space are.

use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::SPAN;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// What the agent has said of spans. It stays true as long as any of a span is reserved.
#[derive(Debug, Default)]
pub(crate) struct Homes(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    spans: HashMap<u64, Option<Home>>,
    /// How often something was forgotten.
    forgotten: u64,
}

/// An address in a window.
#[derive(Clone, Copy, Debug)]
struct Home(NonNull<u8>);

// SAFETY: an address in memory that several processes share.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Homes {
    /// Where the span is that `at` is in; `ask` says so the first time, and of some spans after it. `None`: nowhere here.
    pub(crate) fn find<E>(
        &self,
        at: u64,
        ask: impl FnOnce() -> Result<Vec<Option<NonNull<u8>>>, E>,
    ) -> Result<Option<NonNull<u8>>, E> {
        let span = at / SPAN as u64;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(home) = known.spans.get(&span) {
            return Ok(home.map(|home| home.0));
        }
        let before = known.forgotten;
        drop(known);
        let found = ask()?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // The caller uses the first one, so it is reserved. The others may not be any more, or not yet.
        let certain = if known.forgotten == before { found.len() } else { 1 };
        for (span, home) in (span..).zip(&found[..certain.min(found.len())]) {
            if home.is_some() {
                known.spans.insert(span, home.map(Home));
            }
        }
        let home = found.first().copied().flatten();
        known.spans.insert(span, home.map(Home));
        Ok(home)
    }

    /// Some of these bytes is not wanted any more: who comes next asks again.
    pub(crate) fn forget(&self, bytes: &Range<u64>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.forgotten += 1;
        for span in bytes.start / SPAN as u64..bytes.end.div_ceil(SPAN as u64) {
            known.spans.remove(&span);
        }
    }
}

/// Where in its span a byte is.
pub(crate) fn within_span(at: u64) -> usize {
    usize::try_from(at % SPAN as u64).unwrap_or(0)
}

/// The parts of so many bytes at `at` that lie in one span each: where, and which bytes.
pub(crate) fn parts(at: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let first = (SPAN - within_span(at)).min(len);
    let starts = core::iter::once(0).chain((first..len).step_by(SPAN)).take_while(move |&it| it < len);
    starts.map(move |start| {
        let end = if start == 0 { first } else { len.min(start + SPAN) };
        (at + start as u64, start..end)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_spans_do() {
        let got = |at: u64, len| parts(at, len).collect::<Vec<_>>();
        let span = SPAN as u64;
        assert_eq!(got(5, 0), []);
        assert_eq!(got(4096, 4096), [(4096, 0..4096)]);
        assert_eq!(got(span, SPAN), [(span, 0..SPAN)]);
        let want = [(span - 4096, 0..4096), (span, 4096..4096 + SPAN), (2 * span, 4096 + SPAN..8192 + SPAN)];
        assert_eq!(got(span - 4096, 8192 + SPAN), want);
    }

    #[test]
    fn who_gave_something_back_asks_again() {
        let (homes, byte) = (Homes::default(), NonNull::<u8>::dangling());
        let find = |at, answer| homes.find(at, || Ok::<_, ()>(vec![answer])).unwrap();
        assert_eq!((find(5, Some(byte)), find(4096, None)), (Some(byte), Some(byte)));
        assert_eq!((find(SPAN as u64, None), find(SPAN as u64 + 1, Some(byte))), (None, None));
        homes.forget(&(4096..8192));
        assert_eq!((find(5, None), find(SPAN as u64, Some(byte))), (None, None));
    }

    #[test]
    fn what_was_given_back_while_it_was_told_is_not_believed() {
        let (byte, span) = (NonNull::<u8>::dangling(), SPAN as u64);
        for given_back in [false, true] {
            let homes = Homes::default();
            let told = || {
                if given_back {
                    homes.forget(&(span..2 * span));
                }
                Ok::<_, ()>(vec![Some(byte), Some(byte), None])
            };
            assert_eq!(homes.find(0, told), Ok(Some(byte)));
            let asked = |at| homes.find(at, || Err(())).is_err();
            assert_eq!([0, span, 2 * span].map(asked), [false, given_back, true]);
        }
    }
}
