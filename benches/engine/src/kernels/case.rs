//! What is measured: a kernel, how many elements, and where the vectors lie.

/// A kernel by its BLAS name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Dsum,
    Dasum,
    Dsumsq,
    Dnrm2,
    Ddot,
    Daxpy,
    Zdotu,
    Ssum,
    Sdot,
}

impl Kernel {
    pub(super) const ALL: [Kernel; 9] = [
        Kernel::Dsum,
        Kernel::Dasum,
        Kernel::Dsumsq,
        Kernel::Dnrm2,
        Kernel::Ddot,
        Kernel::Daxpy,
        Kernel::Zdotu,
        Kernel::Ssum,
        Kernel::Sdot,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kernel::Dsum => "dsum",
            Kernel::Dasum => "dasum",
            Kernel::Dsumsq => "dsumsq",
            Kernel::Dnrm2 => "dnrm2",
            Kernel::Ddot => "ddot",
            Kernel::Daxpy => "daxpy",
            Kernel::Zdotu => "zdotu",
            Kernel::Ssum => "ssum",
            Kernel::Sdot => "sdot",
        }
    }

    pub(super) fn formula(self) -> &'static str {
        match self {
            Kernel::Dsum | Kernel::Ssum => "sum of x[i]",
            Kernel::Dasum => "sum of |x[i]|",
            Kernel::Dsumsq => "sum of x[i]^2",
            Kernel::Dnrm2 => "root of the sum of x[i]^2, safe",
            Kernel::Ddot | Kernel::Sdot => "sum of x[i] * y[i]",
            Kernel::Daxpy => "y[i] = a * x[i] + y[i]",
            Kernel::Zdotu => "sum of x[i] * y[i], complex",
        }
    }

    /// Additions and multiplications for each element.
    pub(super) fn flops(self) -> f64 {
        match self {
            Kernel::Dsum | Kernel::Dasum | Kernel::Ssum => 1.0,
            Kernel::Dsumsq | Kernel::Dnrm2 | Kernel::Ddot | Kernel::Daxpy | Kernel::Sdot => 2.0,
            Kernel::Zdotu => 8.0,
        }
    }

    /// Additions only, or with as many multiplications.
    pub(super) fn is_fused(self) -> bool {
        !matches!(self, Kernel::Dsum | Kernel::Dasum | Kernel::Ssum)
    }

    pub(super) fn is_single(self) -> bool {
        matches!(self, Kernel::Ssum | Kernel::Sdot)
    }

    /// Bytes of an element.
    pub(super) fn element(self) -> usize {
        match self {
            Kernel::Zdotu => 16,
            Kernel::Ssum | Kernel::Sdot => 4,
            _ => 8,
        }
    }

    pub(super) fn vectors(self) -> usize {
        if matches!(self, Kernel::Ddot | Kernel::Daxpy | Kernel::Zdotu | Kernel::Sdot) { 2 } else { 1 }
    }

    /// Bytes that move for each element: what is stored counts once more.
    pub(super) fn moved(self) -> f64 {
        let vectors = self.vectors() + usize::from(self == Kernel::Daxpy);
        (vectors * self.element()) as f64
    }

    /// Every length, aligned; and misaligned by a part of a cache line where that is to cost little. A vector has
    /// `room` bytes.
    pub(super) fn cases(self, room: usize) -> impl Iterator<Item = Case> {
        const K: usize = 1 << 10;
        const LENGTHS: [usize; 13] =
            [8, 32, 128, 512, K, 3 * K, 16 * K, 32 * K, 96 * K, 256 * K, 512 * K, 8 * K * K, 64 * K * K];
        let mut lengths = LENGTHS.map(|n| n.min(room / self.element())).to_vec();
        lengths.dedup();
        let aligned = lengths.into_iter().map(move |n| Case { kernel: self, n, shift: 0 });
        let apart = [K, 32 * K, 256 * K].into_iter().flat_map(|n| [(n, 16), (n, 48)]);
        aligned.chain(apart.map(move |(n, shift)| Case { kernel: self, n, shift }))
    }
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) kernel: Kernel,
    pub(super) n: usize,
    /// Bytes behind a cache line at which both vectors begin.
    pub(super) shift: usize,
}

impl Case {
    /// Bytes of all vectors.
    pub(super) fn footprint(&self) -> usize {
        self.n * self.kernel.element() * self.kernel.vectors()
    }

    pub(super) fn title(&self) -> String {
        format!("{} of {}", self.kernel.name(), self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_end_where_the_memory_does() {
        let most = |room| Kernel::Zdotu.cases(room).map(|case| case.n).max();
        assert_eq!(most(usize::MAX), Some(64 << 20));
        assert_eq!(most(64 << 20), Some(4 << 20));
    }

    #[test]
    fn an_update_moves_what_it_stores_too() {
        assert_eq!(Kernel::Daxpy.moved(), 24.0);
        assert_eq!(Kernel::Ddot.moved(), 16.0);
        assert_eq!(Case { kernel: Kernel::Zdotu, n: 10, shift: 0 }.footprint(), 320);
    }
}
