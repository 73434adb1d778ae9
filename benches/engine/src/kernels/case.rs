//! Defines what is measured: a kernel, a number of elements, and the alignment of the vectors.

/// A kernel by its BLAS name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlasKernel {
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

impl BlasKernel {
    pub(super) const ALL: [BlasKernel; 9] = [
        BlasKernel::Dsum,
        BlasKernel::Dasum,
        BlasKernel::Dsumsq,
        BlasKernel::Dnrm2,
        BlasKernel::Ddot,
        BlasKernel::Daxpy,
        BlasKernel::Zdotu,
        BlasKernel::Ssum,
        BlasKernel::Sdot,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            BlasKernel::Dsum => "dsum",
            BlasKernel::Dasum => "dasum",
            BlasKernel::Dsumsq => "dsumsq",
            BlasKernel::Dnrm2 => "dnrm2",
            BlasKernel::Ddot => "ddot",
            BlasKernel::Daxpy => "daxpy",
            BlasKernel::Zdotu => "zdotu",
            BlasKernel::Ssum => "ssum",
            BlasKernel::Sdot => "sdot",
        }
    }

    pub(super) fn formula(self) -> &'static str {
        match self {
            BlasKernel::Dsum | BlasKernel::Ssum => "sum of x[i]",
            BlasKernel::Dasum => "sum of |x[i]|",
            BlasKernel::Dsumsq => "sum of x[i]^2",
            BlasKernel::Dnrm2 => "root of the sum of x[i]^2, safe",
            BlasKernel::Ddot | BlasKernel::Sdot => "sum of x[i] * y[i]",
            BlasKernel::Daxpy => "y[i] = a * x[i] + y[i]",
            BlasKernel::Zdotu => "sum of x[i] * y[i], complex",
        }
    }

    /// Returns the number of additions and multiplications for each element.
    pub(super) fn flops(self) -> f64 {
        match self {
            BlasKernel::Dsum | BlasKernel::Dasum | BlasKernel::Ssum => 1.0,
            BlasKernel::Dsumsq
            | BlasKernel::Dnrm2
            | BlasKernel::Ddot
            | BlasKernel::Daxpy
            | BlasKernel::Sdot => 2.0,
            BlasKernel::Zdotu => 8.0,
        }
    }

    /// Returns whether each addition has a multiplication to fuse with.
    pub(super) fn is_fused(self) -> bool {
        !matches!(self, BlasKernel::Dsum | BlasKernel::Dasum | BlasKernel::Ssum)
    }

    pub(super) fn is_single(self) -> bool {
        matches!(self, BlasKernel::Ssum | BlasKernel::Sdot)
    }

    /// Returns the bytes of an element.
    pub(super) fn element(self) -> usize {
        match self {
            BlasKernel::Zdotu => 16,
            BlasKernel::Ssum | BlasKernel::Sdot => 4,
            _ => 8,
        }
    }

    pub(super) fn vectors(self) -> usize {
        if matches!(self, BlasKernel::Ddot | BlasKernel::Daxpy | BlasKernel::Zdotu | BlasKernel::Sdot) {
            2
        } else {
            1
        }
    }

    /// Returns the bytes moved for each element; a stored element counts twice.
    pub(super) fn moved(self) -> f64 {
        let vectors = self.vectors() + usize::from(self == BlasKernel::Daxpy);
        (vectors * self.element()) as f64
    }

    /// Returns all lengths that fit in vectors of `room` bytes: aligned, and for some of them misaligned by a part of
    /// a cache line, which should cost little.
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
    pub(super) kernel: BlasKernel,
    pub(super) n: usize,
    /// Bytes from the start of a cache line to the start of both vectors.
    pub(super) shift: usize,
}

impl Case {
    /// Returns the bytes of all vectors.
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
    fn lengths_end_with_the_memory() {
        let most = |room| BlasKernel::Zdotu.cases(room).map(|case| case.n).max();
        assert_eq!(most(usize::MAX), Some(64 << 20));
        assert_eq!(most(64 << 20), Some(4 << 20));
    }

    #[test]
    fn updates_move_stored_elements_twice() {
        assert_eq!(BlasKernel::Daxpy.moved(), 24.0);
        assert_eq!(BlasKernel::Ddot.moved(), 16.0);
        assert_eq!(Case { kernel: BlasKernel::Zdotu, n: 10, shift: 0 }.footprint(), 320);
    }
}
