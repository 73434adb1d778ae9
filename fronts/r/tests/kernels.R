# lg_sum and the other kernels: results, types, refused arguments.
source("support/start.R")

x <- 1 / seq_len(1000)
y <- sqrt(seq_len(1000)) * c(1, 1, -1, 1)

# The order as docs/kernels.md has it, in R: 64 lanes, then halves.
lanes <- function(x) {
  width <- 64
  sums <- rowSums_in_order(matrix(c(x, numeric(-length(x) %% width)), width))
  while (width > 1) {
    width <- width / 2
    sums <- sums[seq_len(width)] + sums[width + seq_len(width)]
  }
  sums
}
# rowSums() adds in long double.
rowSums_in_order <- function(m) Reduce(`+`, lapply(seq_len(ncol(m)), function(j) m[, j]), numeric(nrow(m)))

stopifnot(
  identical(lg_sum(x), lanes(x)),
  identical(lg_sum(y), lanes(y)),
  identical(lg_asum(y), lanes(abs(y))),
  identical(lg_amax(y), max(abs(y))),
  identical(lg_amin(y), min(abs(y))),
  identical(c(lg_amax(numeric()), lg_amin(numeric())), c(0, Inf)),
  identical(lg_sum(x[1:63]), lanes(x[1:63])),
  all.equal(lg_dot(x, y), sum(x * y), tolerance = 1e-13),
  identical(lg_dot(y, y), lg_sumsq(y)),
  identical(lg_nrm2(y), sqrt(lg_sumsq(y))),
  lg_nrm2(c(3e300, 4e300)) == 5e300,
  lg_sum(numeric()) == 0,
  identical(lg_sum(1:10), 55),
  identical(lg_sum(c(TRUE, FALSE, TRUE)), 2)
)

# Missing values keep their name.
stopifnot(
  is.na(lg_sum(c(1, NA))), !is.nan(lg_sum(c(1, NA))), is.nan(lg_sum(c(1, NaN, NA))),
  !is.nan(lg_sum(c(1L, NA))), is.nan(lg_sum(c(Inf, -Inf)))
)

z <- complex(real = x, imaginary = rev(x))
w <- complex(real = y, imaginary = x)
stopifnot(
  all.equal(lg_dot(z, w), sum(z * w), tolerance = 1e-12),
  all.equal(lg_dot(z, w, conjugate = TRUE), sum(Conj(z) * w), tolerance = 1e-12),
  identical(lg_dot(z, 1:1000), lg_dot(z, as.complex(1:1000)))
)

# A new vector; the old one is as it was.
old <- y + 0
named <- setNames(y, seq_along(y))
stopifnot(
  all.equal(lg_axpy(2, x, y), 2 * x + y, tolerance = 1e-15), identical(y, old),
  identical(lg_axpy(0, x, y), y), identical(names(lg_axpy(2, x, named)), names(named)),
  # One rounding: 2^-54 would be lost in the product.
  lg_axpy(1 + 2^-52, 1 - 2^-53, -1) == 2^-53 - 2^-105
)

# The number of threads changes no bit.
usual <- lg_threads()
stopifnot(lg_threads(3) == 3, lg_threads() == 3, identical(lg_sum(rep_len(x, 3e6)), {lg_threads(1); lg_sum(rep_len(x, 3e6))}))
stopifnot(lg_threads(0) == usual)
fails(lg_threads(-1), "threads must be a whole number")

fails(lg_sum("a"), "x must be a vector of numbers, not character")
fails(lg_sum(factor("a")), "factor")
fails(lg_sum(1i), "complex")
fails(lg_dot(1:2, 1:3), "x has 2 elements and y 3")
fails(lg_dot(1, 1, conjugate = NA), "conjugate must be TRUE or FALSE")
fails(lg_axpy(1:2, 1, 1), "a must be one number")

# Long vectors, with threads, and in a forked child.
long <- rep_len(x, 3e6)
want <- lg_sum(long)
child <- parallel::mclapply(1:2, function(i) lg_sum(long), mc.cores = 2)
stopifnot(identical(child, list(want, want)), all.equal(want, sum(long), tolerance = 1e-14))
