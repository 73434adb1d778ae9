# Sums with the same bits on every processor and for any number of threads.

# Kernels of one vector, in the order of the table in glue.c.
of_one <- c("lg_sum", "lg_sumsq", "lg_nrm2", "lg_asum", "lg_amax", "lg_amin")

lg_sum <- function(x) reduce("lg_sum", x, sys.call())
lg_sumsq <- function(x) reduce("lg_sumsq", x, sys.call())
lg_nrm2 <- function(x) reduce("lg_nrm2", x, sys.call())
lg_asum <- function(x) reduce("lg_asum", x, sys.call())
lg_amax <- function(x) reduce("lg_amax", x, sys.call())
lg_amin <- function(x) reduce("lg_amin", x, sys.call())

lg_dot <- function(x, y, conjugate = FALSE) {
  call <- sys.call()
  conjugate <- flag(conjugate, "conjugate", call)
  if (is.complex(x) || is.complex(y)) {
    x <- complexes(x, "x", call)
    y <- complexes(y, "y", call)
  } else {
    x <- doubles(x, "x", call)
    y <- doubles(y, "y", call)
  }
  same_length(x, y, call)
  need_kernels(call)
  .Call(C_dot, x, y, conjugate)
}

lg_axpy <- function(a, x, y) {
  call <- sys.call()
  a <- doubles(a, "a", call)
  if (length(a) != 1L) fail("a must be one number, not ", length(a), call = call)
  x <- doubles(x, "x", call)
  y <- doubles(y, "y", call)
  same_length(x, y, call)
  need_kernels(call)
  .Call(C_axpy, a, x, y)
}

lg_threads <- function(threads = NULL) {
  call <- sys.call()
  if (!is.null(threads) && !(is.numeric(threads) && length(threads) == 1L && threads %in% 0:1e6)) {
    fail("threads must be a whole number; 0 is one for each processor", call = call)
  }
  need_kernels(call)
  .Call(C_threads, threads)
}

reduce <- function(name, x, call) {
  x <- doubles(x, "x", call)
  need_kernels(call)
  .Call(C_of_one, match(name, of_one) - 1L, x)
}

# Returns the vector itself if it holds doubles, else a copy with doubles.
doubles <- function(x, name, call) {
  if (is.double(x)) return(x)
  if ((is.numeric(x) || is.logical(x)) && !is.factor(x)) return(as.double(x))
  fail(name, " must be a vector of numbers, not ", class(x)[1L], call = call)
}

complexes <- function(x, name, call) {
  if (is.complex(x)) x else as.complex(doubles(x, name, call))
}

same_length <- function(x, y, call) {
  if (length(x) != length(y)) {
    fail("x has ", length(x), " elements and y ", length(y), ": nothing is recycled", call = call)
  }
}

need_kernels <- function(call) {
  why <- no_library()
  if (!is.null(why)) fail("there are no kernels here: ", why, call = call)
}
