//! The memory of a queue, from which each transfer gets a part.

use core::ops::Range;

/// Allocates parts of a queue's memory, in bytes, by first fit: parts are few, and live as long as a transfer.
#[derive(Debug)]
pub(crate) struct QueueMemory {
    len: usize,
    /// The parts in use, by address.
    used: Vec<Range<usize>>,
}

impl QueueMemory {
    /// Makes an allocator of `len` bytes, for at most `parts` parts at a time.
    pub(crate) fn new(len: usize, parts: usize) -> QueueMemory {
        QueueMemory { len, used: Vec::with_capacity(parts) }
    }

    /// Allocates `len` bytes, if a free part is long enough.
    pub(crate) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let mut start = 0;
        let mut place = self.used.len();
        for (index, used) in self.used.iter().enumerate() {
            if used.start - start >= len {
                place = index;
                break;
            }
            start = used.end;
        }
        let part = start..start + len;
        (part.end <= self.len).then(|| self.used.insert(place, part.clone()))?;
        Some(part)
    }

    /// Frees a part.
    pub(crate) fn give_back(&mut self, part: &Range<usize>) {
        self.used.retain(|used| used != part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_used_again() {
        let mut memory = QueueMemory::new(100, 8);
        let parts: Vec<_> = [40, 20, 40].into_iter().map(|len| memory.take(len).unwrap()).collect();
        assert_eq!(parts, [0..40, 40..60, 60..100]);
        assert_eq!(memory.take(1), None);
        memory.give_back(&parts[1]);
        assert_eq!(memory.take(21), None);
        assert_eq!(memory.take(15), Some(40..55));
        memory.give_back(&parts[0]);
        assert_eq!((memory.take(40), memory.take(5)), (Some(0..40), Some(55..60)));
    }
}
