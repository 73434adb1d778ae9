//! What blocks of one class cost, and how much less than their neighbours of another.

use core::ops::Range;

/// A block is compared with so many on each side.
const NEAR: usize = 2;

/// What one block cost.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: usize,
    fills: u64,
    pages: u64,
    /// Of these, so many left again.
    left: u64,
    ns: f64,
}

impl Block {
    fn filled(&mut self, pages: usize, ns: f64) {
        self.fills += 1;
        self.pages += pages as u64;
        self.ns += ns;
    }

    /// Pages that came.
    const fn pages(&self) -> f64 {
        self.pages as f64
    }

    /// What it costs at such prices.
    fn cost(&self, price: Price) -> f64 {
        let leaving = self.fills as f64 * price.set + self.pages() * price.page;
        self.ns + leaving + self.left as f64 * price.room
    }
}

/// Blocks of one class that saw a fill, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub(super) fn filled(&mut self, number: usize, pages: usize, ns: u64) {
        let at = match self.0.binary_search_by_key(&number, |block| block.number) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Block { number, fills: 0, pages: 0, left: 0, ns: 0.0 });
                at
            }
        };
        self.0[at].filled(pages, ns as f64);
    }

    /// A block had a fill of another kind, where it saw one before.
    pub(super) fn beside(&mut self, number: usize, pages: usize, ns: f64) {
        if let Some(block) = self.seen(number) {
            block.filled(pages, ns);
        }
    }

    /// Pages of a block left, where it saw a fill; those that came earlier do not count.
    pub(super) fn left(&mut self, number: usize, pages: usize) {
        if let Some(block) = self.seen(number) {
            block.left = (block.left + pages as u64).min(block.pages);
        }
    }

    /// A block that saw a fill.
    fn seen(&mut self, number: usize) -> Option<&mut Block> {
        let at = self.0.binary_search_by_key(&number, |block| block.number).ok()?;
        Some(&mut self.0[at])
    }

    pub(super) fn fills(&self) -> u64 {
        self.0.iter().map(|block| block.fills).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// These, and those of another lap; a block may be there twice.
    pub(super) fn append(&mut self, other: &Blocks) {
        self.0.extend(&other.0);
        self.0.sort_by_key(|block| block.number);
    }

    /// The numbers of blocks, from the first to the last.
    pub(super) fn numbers(&self) -> Range<usize> {
        self.0.first().map_or(0, |it| it.number)..self.0.last().map_or(0, |it| it.number + 1)
    }

    pub(super) fn all(&self) -> Sample<'_> {
        Sample(&self.0)
    }

    /// The blocks with such numbers.
    pub(super) fn within(&self, numbers: &Range<usize>) -> Sample<'_> {
        let [first, end] = [numbers.start, numbers.end].map(|it| self.0.partition_point(|b| b.number < it));
        Sample(&self.0[first..end])
    }
}

/// What a fill costs beside the time it took, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    /// Its set leaves once more,
    pub(super) set: f64,
    /// and so does each of its pages,
    pub(super) page: f64,
    /// which took room from others until then.
    pub(super) room: f64,
}

/// Some blocks of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a>(&'a [Block]);

impl Sample<'_> {
    pub(super) const fn len(self) -> usize {
        self.0.len()
    }

    /// Pages and nanoseconds of a block, on average.
    pub(super) fn of_one(self) -> (f64, f64) {
        (self.mean(Block::pages), self.mean(|block| block.ns))
    }

    /// What the program waits for a page, on average.
    pub(super) fn page_ns(self) -> f64 {
        let (pages, ns) = self.of_one();
        ns / pages.max(1.0)
    }

    /// How much less blocks of `others` cost than these, on average, and the square of how far that may be off. Of at least
    /// three blocks.
    pub(super) fn less(self, others: Sample<'_>, price: Price) -> Option<(f64, f64)> {
        if self.0.len().min(others.0.len()) < 3 {
            return None;
        }
        let cost = |block: &Block| block.cost(price);
        let less = |other: &Block| self.near(other, cost) - cost(other);
        let mean = others.mean(less);
        Some((mean, others.mean(|it| (less(it) - mean).powi(2)) / (others.len() - 1) as f64))
    }

    /// The share of pages that blocks of `others` bring less, the same for a block of few pages and for one of many.
    pub(super) fn fewer(self, others: Sample<'_>) -> f64 {
        others.mean(|other| {
            let (these, others) = (self.near(other, Block::pages), other.pages());
            2.0 * (these - others) / (these + others).max(1.0)
        })
    }

    /// What `of` says of the neighbours of a block, on average: blocks are not alike, but those of one array are.
    fn near(self, other: &Block, of: impl Fn(&Block) -> f64) -> f64 {
        let at = self.0.partition_point(|block| block.number < other.number);
        Sample(&self.0[at.saturating_sub(NEAR)..(at + NEAR).min(self.0.len())]).mean(of)
    }

    /// What `of` says on average.
    fn mean(self, of: impl Fn(&Block) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len().max(1) as f64
    }

    /// What a page costs, and the square of how far that may be off.
    pub(super) fn of_page(self, price: Price) -> (f64, f64) {
        let pages = self.0.iter().map(Block::pages).sum::<f64>().max(1.0);
        let mean = self.0.iter().map(|it| it.cost(price)).sum::<f64>() / pages;
        let off = self.0.iter().map(|it| (it.cost(price) - mean * it.pages()).powi(2)).sum::<f64>();
        (mean, off / pages / pages)
    }
}
