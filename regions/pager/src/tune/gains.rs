//! What a trial has seen: what blocks cost, and what other sizes of sets would gain.

/// The two ways from the size in force.
pub(super) const HALF: usize = 0;
pub(super) const DOUBLE: usize = 1;
/// A gain is so many standard errors: blocks are not all alike, and one looks often.
const SURE: f64 = 3.0;

/// What one block cost.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: usize,
    fills: u64,
    pages: u64,
    ns: f64,
}

/// Blocks of one class that saw a fill, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub(super) fn filled(&mut self, number: usize, pages: usize, ns: u64) {
        let at = match self.0.binary_search_by_key(&number, |block| block.number) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Block { number, fills: 0, pages: 0, ns: 0.0 });
                at
            }
        };
        let block = &mut self.0[at];
        block.fills += 1;
        block.pages += pages as u64;
        block.ns += ns as f64;
    }

    pub(super) fn fills(&self) -> u64 {
        self.0.iter().map(|block| block.fills).sum()
    }

    /// Pages and nanoseconds of a block, on average.
    pub(super) fn of_one(&self) -> (f64, f64) {
        let count = self.0.len().max(1) as f64;
        let sum = |of: fn(&Block) -> f64| self.0.iter().map(of).sum::<f64>() / count;
        (sum(|block| block.pages as f64), sum(|block| block.ns))
    }

    /// Mean cost of a block, and the square of how far it may be off, where a page costs `page_ns` beside the time it
    /// took. Of at least three blocks.
    pub(super) fn mean(&self, page_ns: f64) -> Option<(f64, f64)> {
        if self.0.len() < 3 {
            return None;
        }
        let count = self.0.len() as f64;
        let costs = || self.0.iter().map(|it| it.ns + it.pages as f64 * page_ns);
        let mean = costs().sum::<f64>() / count;
        let variance = costs().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Some((mean, variance / count))
    }
}

/// What each way would gain, by page that came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gains {
    pub(super) laps: f64,
    /// Nanoseconds that the program waits.
    pub(super) waits: f64,
    /// Nanoseconds less with sets of half the size and of twice the size, with the squares of their errors.
    pub(super) less: [(f64, f64); 2],
}

impl Gains {
    /// This and what followed, each worth as many laps as it took.
    pub(super) fn and(self, next: Gains) -> Gains {
        let laps = self.laps + next.laps;
        if laps <= 0.0 {
            return next;
        }
        let [mine, others] = [self.laps / laps, next.laps / laps];
        let less = [HALF, DOUBLE].map(|way| {
            let ((less, square), (next_less, next_square)) = (self.less[way], next.less[way]);
            (less * mine + next_less * others, square * mine * mine + next_square * others * others)
        });
        Gains { laps, waits: self.waits * mine + next.waits * others, less }
    }

    /// The ways that are better by at least such shares of the wait, for sure; with `sign` -1, worse.
    fn sure(self, least: [f64; 2], sign: f64) -> [bool; 2] {
        [HALF, DOUBLE].map(|way| {
            let (less, square) = (self.less[way].0 * sign, self.less[way].1);
            less > SURE * square.sqrt() && less > self.waits * least[way]
        })
    }

    /// The better way, if one is better by at least such shares of the wait.
    pub(super) fn best(self, least: [f64; 2]) -> Option<usize> {
        match self.sure(least, 1.0) {
            [true, true] if self.less[HALF].0 > self.less[DOUBLE].0 => Some(HALF),
            [_, true] => Some(DOUBLE),
            [true, false] => Some(HALF),
            [false, false] => None,
        }
    }

    /// Each way that is `open` is worse by at least such shares of the wait.
    pub(super) fn all_worse(self, least: [f64; 2], open: [bool; 2]) -> bool {
        let worse = self.sure(least, -1.0);
        [HALF, DOUBLE].iter().all(|&way| worse[way] || !open[way])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(laps: f64, half: f64, error: f64) -> Gains {
        Gains { laps, waits: 100.0, less: [(half, error * error), (-half, error * error)] }
    }

    #[test]
    fn a_gain_counts_when_it_is_large_and_sure() {
        assert_eq!(gains(1.0, 40.0, 10.0).best([0.3; 2]), Some(HALF));
        assert_eq!(gains(1.0, 40.0, 10.0).best([0.5; 2]), None, "less than the half that is asked for");
        assert_eq!(gains(1.0, 40.0, 20.0).best([0.3; 2]), None, "only two errors");
        assert_eq!(gains(1.0, -40.0, 10.0).best([0.3; 2]), Some(DOUBLE));
    }

    #[test]
    fn what_is_seen_longer_counts_more_and_is_surer() {
        let both = gains(3.0, 40.0, 10.0).and(gains(1.0, 0.0, 10.0));
        assert_eq!((both.laps, both.less[HALF].0), (4.0, 30.0));
        let error = both.less[HALF].1.sqrt();
        assert!((7.9..8.0).contains(&error), "{error}"); // 10 times the root of 9/16 + 1/16
        assert_eq!(Gains::default().and(gains(1.0, 40.0, 10.0)).less[HALF].0, 40.0);
    }

    #[test]
    fn a_way_that_is_not_open_need_not_be_worse() {
        let better_half = gains(1.0, 40.0, 10.0);
        assert!(better_half.all_worse([0.3; 2], [false, true]));
        assert!(!better_half.all_worse([0.3; 2], [true, true]));
    }
}
