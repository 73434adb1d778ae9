//! Records the costs of leader blocks, and compares blocks of one class with their neighbours of another class.

use core::ops::Range;

/// Number of blocks on each side of a block with which it is compared.
const NEAR: usize = 2;

/// The observed cost of one block.
#[derive(Clone, Copy, Debug)]
struct BlockCost {
    number: usize,
    fills: u64,
    pages: u64,
    /// Number of filled pages that were evicted since.
    evicted: u64,
    ns: f64,
}

impl BlockCost {
    fn filled(&mut self, pages: usize, ns: f64) {
        self.fills += 1;
        self.pages += pages as u64;
        self.ns += ns;
    }

    /// Returns the number of pages that were filled.
    const fn pages(&self) -> f64 {
        self.pages as f64
    }

    /// Returns the cost in nanoseconds: the time of the fills, and the price of their evictions.
    fn cost(&self, price: EvictionPrice) -> f64 {
        let leaving = self.fills as f64 * price.unit + self.pages() * price.page;
        self.ns + leaving + self.evicted as f64 * price.room
    }
}

/// The costs of the leader blocks of one class in which a page was filled, sorted by block number.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockCosts(Vec<BlockCost>);

impl BlockCosts {
    pub(super) fn filled(&mut self, number: usize, pages: usize, ns: u64) {
        let at = match self.0.binary_search_by_key(&number, |block| block.number) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, BlockCost { number, fills: 0, pages: 0, evicted: 0, ns: 0.0 });
                at
            }
        };
        self.0[at].filled(pages, ns as f64);
    }

    /// Adds a fill by the other kind of access (dense or strided) to a block that has had a fill by this kind of
    /// access.
    pub(super) fn filled_otherwise(&mut self, number: usize, pages: usize, ns: f64) {
        if let Some(block) = self.seen(number) {
            block.filled(pages, ns);
        }
    }

    /// Counts evicted pages of a block that has had a fill, but not more than were filled.
    pub(super) fn evicted(&mut self, number: usize, pages: usize) {
        if let Some(block) = self.seen(number) {
            block.evicted = (block.evicted + pages as u64).min(block.pages);
        }
    }

    /// Returns the block with this number if it has had a fill.
    fn seen(&mut self, number: usize) -> Option<&mut BlockCost> {
        let at = self.0.binary_search_by_key(&number, |block| block.number).ok()?;
        Some(&mut self.0[at])
    }

    pub(super) fn fills(&self) -> u64 {
        self.0.iter().map(|block| block.fills).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the blocks of another epoch. A block that has fills in both epochs is then listed twice.
    pub(super) fn append(&mut self, other: &BlockCosts) {
        self.0.extend(&other.0);
        self.0.sort_by_key(|block| block.number);
    }

    /// Returns the range from the first to the last block number.
    pub(super) fn numbers(&self) -> Range<usize> {
        self.0.first().map_or(0, |it| it.number)..self.0.last().map_or(0, |it| it.number + 1)
    }

    pub(super) fn all(&self) -> Sample<'_> {
        Sample(&self.0)
    }

    /// Returns the blocks whose numbers are in a range.
    pub(super) fn within(&self, numbers: &Range<usize>) -> Sample<'_> {
        let [first, end] = [numbers.start, numbers.end].map(|it| self.0.partition_point(|b| b.number < it));
        Sample(&self.0[first..end])
    }
}

/// The prices, in nanoseconds, by which set dueling charges a fill for the evictions that it causes.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvictionPrice {
    /// Price for each filled transfer unit, because the unit will be evicted once more.
    pub(super) unit: f64,
    /// Price for each filled page, because the page will be evicted once more.
    pub(super) page: f64,
    /// Price for each filled page that was evicted again, because the local memory that it used made other pages
    /// refault.
    pub(super) room: f64,
}

/// Some of the leader blocks of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a>(&'a [BlockCost]);

impl Sample<'_> {
    pub(super) const fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the mean over all blocks of their filled pages, and the mean of their time in nanoseconds.
    pub(super) fn of_one(self) -> (f64, f64) {
        (self.mean(BlockCost::pages), self.mean(|block| block.ns))
    }

    /// Returns the mean time in nanoseconds for which the program waits for a page.
    pub(super) fn page_ns(self) -> f64 {
        let (pages, ns) = self.of_one();
        ns / pages.max(1.0)
    }

    /// Compares blocks of the class `others` with their neighbours in `self`. Returns by how many nanoseconds the
    /// blocks of `others` cost less on average, and the square of the standard error. Returns `None` if a class has
    /// fewer than three blocks.
    pub(super) fn less(self, others: Sample<'_>, price: EvictionPrice) -> Option<(f64, f64)> {
        if self.0.len().min(others.0.len()) < 3 {
            return None;
        }
        let cost = |block: &BlockCost| block.cost(price);
        let less = |other: &BlockCost| self.near(other, cost) - cost(other);
        let mean = others.mean(less);
        Some((mean, others.mean(|it| (less(it) - mean).powi(2)) / (others.len() - 1) as f64))
    }

    /// Returns how many pages fewer a block of `others` fills than its neighbours in `self`, as a share of the mean of
    /// both, averaged over the blocks of `others`: 0.5 if 60 pages are filled where the neighbours fill 100. Each block
    /// has the same weight, however many pages it fills. The result is negative if blocks of `others` fill more.
    pub(super) fn fewer(self, others: Sample<'_>) -> f64 {
        others.mean(|other| {
            let (these, others) = (self.near(other, BlockCost::pages), other.pages());
            2.0 * (these - others) / (these + others).max(1.0)
        })
    }

    /// Returns the mean of `of` over the blocks next to `other`. Only near blocks are compared, because blocks differ,
    /// but those of one array are alike.
    fn near(self, other: &BlockCost, of: impl Fn(&BlockCost) -> f64) -> f64 {
        let at = self.0.partition_point(|block| block.number < other.number);
        Sample(&self.0[at.saturating_sub(NEAR)..(at + NEAR).min(self.0.len())]).mean(of)
    }

    /// Returns the mean of `of` over all blocks.
    fn mean(self, of: impl Fn(&BlockCost) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len().max(1) as f64
    }

    /// Returns the cost of a page in nanoseconds, and the square of its standard error.
    pub(super) fn of_page(self, price: EvictionPrice) -> (f64, f64) {
        let pages = self.0.iter().map(BlockCost::pages).sum::<f64>().max(1.0);
        let mean = self.0.iter().map(|it| it.cost(price)).sum::<f64>() / pages;
        let off = self.0.iter().map(|it| (it.cost(price) - mean * it.pages()).powi(2)).sum::<f64>();
        (mean, off / pages / pages)
    }
}
