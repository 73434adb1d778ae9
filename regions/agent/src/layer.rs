//! A layer of the overlay of a process that is kept at the agent.

use crate::connection::{Connection, Payload};
use crate::message::{DISCARD, RESERVE};
use crate::span_cache::{SpanCache, parts, within_span};
use core::ops::Range;
use largesse_pages::shared::SharedMapping;
use largesse_store::{Direction, Layer, PageStore, Ranges, StoreError, copy_past_caches};
use std::sync::Arc;

/// Number of bytes to a multiple of which a new layer reserves room, because most writes follow earlier ones.
const STEP: u64 = 64 << 10;

/// A layer of this process's overlay, which is one store of the agent.
#[derive(Debug)]
pub(crate) struct AgentLayer {
    agent: Arc<Connection>,
    number: u32,
    /// The memory of the store if this process maps all of it. Pages are then copied to and from it directly.
    window: Option<Arc<SharedMapping>>,
    /// Addresses of the spans of the store in windows that this process maps. It is used if `window` is `None`.
    spans: SpanCache,
}

impl AgentLayer {
    pub(crate) fn new(
        agent: &Arc<Connection>,
        number: u32,
        window: Option<Arc<SharedMapping>>,
    ) -> AgentLayer {
        AgentLayer { agent: Arc::clone(agent), number, window, spans: SpanCache::default() }
    }

    /// Returns the number of the store at the agent.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the memory of the store, if this process maps all of it.
    pub(crate) fn window(&self) -> Option<Arc<SharedMapping>> {
        self.window.clone()
    }

    /// Splits the `len` bytes from `at` on into parts of which this process maps either all or nothing.
    pub(crate) fn parts(&self, at: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> + use<> {
        let whole = !self.agent.has_windows();
        let one = whole.then_some((at, 0..len));
        one.into_iter().chain((!whole).then(|| parts(at, len)).into_iter().flatten())
    }

    /// Copies one [part](AgentLayer::parts) if this process maps it. Returns whether it did.
    pub(crate) fn copy_mapped(
        &self,
        direction: Direction,
        at: u64,
        bytes: &mut [u8],
    ) -> Result<bool, StoreError> {
        let Some(mapped) = self.span_address(at)? else { return Ok(false) };
        match direction {
            // SAFETY: the range is inside the span, whose owner has memory for reserved bytes; the pager never
            // transfers the same bytes twice at once.
            Direction::Read => unsafe {
                bytes.as_mut_ptr().copy_from_nonoverlapping(mapped, bytes.len());
            },
            // SAFETY: as above.
            Direction::Write => unsafe { copy_past_caches(bytes, mapped) },
        }
        Ok(true)
    }

    /// Returns the address of bytes within one span; `None` if this process does not map the span, so that the agent
    /// copies them.
    fn span_address(&self, at: u64) -> Result<Option<*mut u8>, StoreError> {
        if !self.agent.has_windows() {
            return Ok(None);
        }
        self.agent.check()?;
        let span = self.spans.find(at, || self.agent.find(self.number, at))?;
        // SAFETY: the offset is less than a span, all of which is inside the mapping.
        Ok(span.map(|span| unsafe { span.as_ptr().add(within_span(at)) }))
    }

    fn address(&self, window: &SharedMapping, at: u64, len: usize) -> Result<*mut u8, StoreError> {
        self.agent.check()?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at > window.len() || len > window.len() - at {
            return Err(StoreError::Full { wanted: len as u64 });
        }
        // SAFETY: the range is inside the mapping, as was just checked.
        Ok(unsafe { window.start().as_ptr().add(at) })
    }
}

impl PageStore for AgentLayer {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.agent.ask(RESERVE, self.number, at, len, Payload::None)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let from = self.address(window, at, into.len())?;
            // SAFETY: the range is inside the window, where all written pages have memory; the pager never transfers
            // the same bytes twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
            return Ok(());
        }
        for (at, bytes) in parts(at, into.len()) {
            let into = &mut into[bytes];
            match self.span_address(at)? {
                // SAFETY: the range is inside the span, whose owner has memory for reserved bytes; otherwise as above.
                Some(from) => unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) },
                None => self.agent.read(self.number, at, into)?,
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let to = self.address(window, at, from.len())?;
            // SAFETY: as above; `Overlay` has reserved the bytes, or made room for them.
            unsafe { copy_past_caches(from, to) };
            return Ok(());
        }
        for (at, bytes) in parts(at, from.len()) {
            let from = &from[bytes];
            match self.span_address(at)? {
                // SAFETY: as above.
                Some(to) => unsafe { copy_past_caches(from, to) },
                None => self.agent.write(self.number, at, from)?,
            }
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        self.spans.forget(&(at..at + len));
        // If the agent has died, the next request that needs it reports so.
        let _ = self.agent.ask(DISCARD, self.number, at, len, Payload::None);
    }
}

impl Layer for AgentLayer {
    /// Reserves only these bytes, rounded to `STEP`, because reserving allocates memory. Returns `false`, so that it is
    /// called again for other bytes.
    fn make_room(&self, bytes: Range<u64>, _: &Ranges) -> Result<bool, StoreError> {
        let start = bytes.start / STEP * STEP;
        let end = bytes.end.next_multiple_of(STEP);
        let end = self.window.as_ref().map_or(end, |window| end.min(window.len() as u64));
        self.reserve(start, end - start)?;
        Ok(false)
    }
}
