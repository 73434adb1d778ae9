//! The sheets of one process, and what each holds.

use super::sheet::Sheet;
use core::ops::Range;
use largesse_pages::Table;
use std::sync::Arc;

/// Room for all that forked is set aside when it is at most this part of what is free.
const AMPLE: u64 = 4;

/// The sheets of a store, bottom to top.
#[derive(Debug)]
pub(super) struct Layers {
    /// The last one is this process's alone.
    pub(super) sheets: Vec<Arc<Sheet>>,
    /// Which sheet holds each page; before the first fork it is the only one.
    pub(super) holds: Option<Table<u8>>,
    /// Pages were written to the own sheet.
    pub(super) used: bool,
    /// The own sheet has room for all of `promised`, or need not.
    pub(super) roomy: bool,
    /// Bytes that were reserved, in order.
    pub(super) promised: Vec<Range<u64>>,
    /// Between the two ends of a fork: sheets for the parent, if it needs a new one, and the child.
    pub(super) next: Option<(Option<Sheet>, Sheet)>,
    /// And what the child is to have, in the table of the thread that forks.
    pub(super) carried: Vec<Sheet>,
    /// New sheets so far.
    pub(super) made: u32,
}

impl Layers {
    pub(super) fn new(first: Sheet) -> Layers {
        Layers {
            sheets: vec![Arc::new(first)],
            holds: None,
            used: false,
            roomy: true,
            promised: Vec::new(),
            next: None,
            carried: Vec::new(),
            made: 0,
        }
    }

    /// A new sheet on top.
    pub(super) fn push(&mut self, own: Sheet) {
        self.sheets.push(Arc::new(own));
        (self.used, self.roomy) = (false, false);
    }

    /// In a child: these are its sheets. What it has of the parent's are numbers of another table.
    pub(super) fn begin_child(&mut self, sheets: Vec<Sheet>) {
        core::mem::forget((core::mem::take(&mut self.sheets), self.next.take()));
        self.sheets = sheets.into_iter().map(Arc::new).collect();
        (self.used, self.roomy) = (false, false);
    }

    pub(super) fn own(&self) -> Arc<Sheet> {
        Arc::clone(&self.sheets[self.sheets.len() - 1])
    }

    /// Bytes by the sheet that holds them.
    pub(super) fn parts(&self, at: u64, len: usize) -> Vec<(Range<usize>, Arc<Sheet>)> {
        let Some(holds) = &self.holds else { return vec![(0..len, self.own())] };
        let mut parts: Vec<(Range<usize>, u8)> = Vec::new();
        for (page, part) in pages(at, len) {
            match parts.last_mut() {
                Some((before, sheet)) if *sheet == holds[page] => before.end = part.end,
                _ => parts.push((part, holds[page])),
            }
        }
        parts.into_iter().map(|(part, sheet)| (part, Arc::clone(&self.sheets[usize::from(sheet)]))).collect()
    }

    /// The own sheet is about to be written; new ones get room first.
    pub(super) fn write_to(&mut self) -> Arc<Sheet> {
        let own = self.own();
        self.used = true;
        if !core::mem::replace(&mut self.roomy, true) {
            let all: u64 = self.promised.iter().map(|part| part.end - part.start).sum();
            if all <= own.free_bytes() / AMPLE {
                // Refused halfway, the rest is as if it were not ample.
                let _ =
                    self.promised.iter().try_for_each(|part| own.reserve(part.start, part.end - part.start));
            }
        }
        own
    }

    /// The own sheet holds the bytes from now on.
    pub(super) fn written(&mut self, at: u64, len: usize) {
        let own = u8::try_from(self.sheets.len() - 1).unwrap_or(u8::MAX);
        if let Some(holds) = &mut self.holds {
            for (page, _) in pages(at, len) {
                holds[page] = own;
            }
        }
    }

    pub(super) fn promise(&mut self, new: Range<u64>) {
        self.forget(&new);
        let at = self.promised.partition_point(|part| part.start < new.start);
        self.promised.insert(at, new);
        self.promised.dedup_by(|after, before| {
            let joins = before.end == after.start;
            if joins {
                before.end = after.end;
            }
            joins
        });
    }

    pub(super) fn forget(&mut self, gone: &Range<u64>) {
        let rest =
            |part: &Range<u64>| [part.start..part.end.min(gone.start), part.start.max(gone.end)..part.end];
        self.promised = self.promised.iter().flat_map(rest).filter(|part| !part.is_empty()).collect();
    }
}

/// The pages of `len` bytes at `at`, each with its bytes counted from there.
fn pages(at: u64, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let page = largesse_pages::base_page();
    let first = usize::try_from(at).unwrap_or(usize::MAX) / page;
    (0..len.div_ceil(page)).map(move |n| (first + n, n * page..len.min((n + 1) * page)))
}
