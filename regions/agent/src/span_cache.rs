//! A cache of the addresses at which this process maps the spans of a store.

use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::SPAN;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// The addresses of spans that the agent has told. An address is valid while any page of its span is reserved.
#[derive(Debug, Default)]
pub(crate) struct SpanCache(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    spans: HashMap<u64, Option<SpanAddress>>,
    /// Number of calls of `forget`.
    forgotten: u64,
}

/// The address at which this process maps a span.
#[derive(Clone, Copy, Debug)]
struct SpanAddress(NonNull<u8>);

// SAFETY: the address is in memory shared between processes, which any thread may use.
unsafe impl Send for SpanAddress {}
// SAFETY: as above.
unsafe impl Sync for SpanAddress {}

impl SpanCache {
    /// Returns the address of the span that contains `at`; `None` if this process does not map the span. At the first
    /// use of a span, `ask` must return the addresses of that span and of some spans after it.
    pub(crate) fn find<E>(
        &self,
        at: u64,
        ask: impl FnOnce() -> Result<Vec<Option<NonNull<u8>>>, E>,
    ) -> Result<Option<NonNull<u8>>, E> {
        let span = at / SPAN as u64;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = known.spans.get(&span) {
            return Ok(address.map(|address| address.0));
        }
        let before = known.forgotten;
        drop(known);
        let found = ask()?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // The caller uses the first span, so it is reserved. The others may have been discarded, or not reserved yet.
        let certain = if known.forgotten == before { found.len() } else { 1 };
        for (span, address) in (span..).zip(&found[..certain.min(found.len())]) {
            if address.is_some() {
                known.spans.insert(span, address.map(SpanAddress));
            }
        }
        let address = found.first().copied().flatten();
        known.spans.insert(span, address.map(SpanAddress));
        Ok(address)
    }

    /// Forgets the addresses of the spans of discarded bytes, so that the next use asks again.
    pub(crate) fn forget(&self, bytes: &Range<u64>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.forgotten += 1;
        for span in bytes.start / SPAN as u64..bytes.end.div_ceil(SPAN as u64) {
            known.spans.remove(&span);
        }
    }
}

/// Returns the offset in its span of the byte at `at`.
pub(crate) fn within_span(at: u64) -> usize {
    usize::try_from(at % SPAN as u64).unwrap_or(0)
}

/// Splits the `len` bytes from `at` on at the ends of spans. Yields for each part its offset in the store, and its
/// range in the `len` bytes.
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
    fn parts_end_at_spans() {
        let got = |at: u64, len| parts(at, len).collect::<Vec<_>>();
        let span = SPAN as u64;
        assert_eq!(got(5, 0), []);
        assert_eq!(got(4096, 4096), [(4096, 0..4096)]);
        assert_eq!(got(span, SPAN), [(span, 0..SPAN)]);
        let want = [(span - 4096, 0..4096), (span, 4096..4096 + SPAN), (2 * span, 4096 + SPAN..8192 + SPAN)];
        assert_eq!(got(span - 4096, 8192 + SPAN), want);
    }

    #[test]
    fn discarded_spans_are_asked_again() {
        let (cache, byte) = (SpanCache::default(), NonNull::<u8>::dangling());
        let find = |at, answer| cache.find(at, || Ok::<_, ()>(vec![answer])).unwrap();
        assert_eq!((find(5, Some(byte)), find(4096, None)), (Some(byte), Some(byte)));
        assert_eq!((find(SPAN as u64, None), find(SPAN as u64 + 1, Some(byte))), (None, None));
        cache.forget(&(4096..8192));
        assert_eq!((find(5, None), find(SPAN as u64, Some(byte))), (None, None));
    }

    #[test]
    fn answers_outdated_by_discard_are_dropped() {
        let (byte, span) = (NonNull::<u8>::dangling(), SPAN as u64);
        for given_back in [false, true] {
            let cache = SpanCache::default();
            let told = || {
                if given_back {
                    cache.forget(&(span..2 * span));
                }
                Ok::<_, ()>(vec![Some(byte), Some(byte), None])
            };
            assert_eq!(cache.find(0, told), Ok(Some(byte)));
            let asked = |at| cache.find(at, || Err(())).is_err();
            assert_eq!([0, span, 2 * span].map(asked), [false, given_back, true]);
        }
    }
}
