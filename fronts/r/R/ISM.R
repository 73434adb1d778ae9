# Switching large pages on and off.

ISM <- function(on = TRUE, minKB, maxKB) {
  call <- sys.call()
  on <- flag(on, "on", call)
  limits <- !missing(minKB) || !missing(maxKB)
  if (!missing(minKB)) minKB <- kilobytes(minKB, "minKB", call)
  if (!missing(maxKB)) maxKB <- kilobytes(maxKB, "maxKB", call)
  if (!on && !limits && !is.null(no_library())) return(invisible(FALSE))

  if (on || limits) need_library(call)
  now <- stats_now(call)
  if (limits) {
    set_limits(
      if (missing(minKB)) kib(now$min_bytes) else minKB,
      if (missing(maxKB)) kib(now$max_bytes) else maxKB, call
    )
  }
  switch_to(on, call)
  invisible(now$enabled == 1)
}

with_ISM <- function(expr) {
  former <- begin(sys.call())
  on.exit(ISM(former))
  expr
}

ISM.trim <- function(keepKB = 0) {
  keepKB <- kilobytes(keepKB, "keepKB", sys.call(), least = 0)
  if (!is.null(no_library())) return(invisible(0))
  invisible(.Call(C_trim, keepKB * 1024))
}

# Switches large pages on and returns the former state; an error names `call`.
begin <- function(call) {
  need_library(call)
  former <- stats_now(call)$enabled == 1
  switch_to(TRUE, call)
  former
}

switch_to <- function(on, call) {
  if (.Call(C_enable, on) == 0L) return()
  why <- .Call(C_why_not)
  fail("large pages cannot be switched on: ", if (is.null(why)) "liblargesse.so refused" else why, call = call)
}

set_limits <- function(minKB, maxKB, call) {
  if (minKB > maxKB) {
    fail("minKB (", format(minKB), ") is above maxKB (", format(maxKB),
      "): give both, as in ISM(minKB = 256, maxKB = 2^40)", call = call)
  }
  most <- if (maxKB >= NO_LIMIT_KB) -1 else maxKB * 1024
  if (.Call(C_set_limits, minKB * 1024, most) != 0L) {
    fail("liblargesse.so refused minKB = ", format(minKB), " and maxKB = ", format(maxKB),
      ": see ISM.status() for those in use", call = call)
  }
}

# Converts bytes to the KiB that users see; 2^40 means no limit.
kib <- function(bytes) min(bytes / 1024, NO_LIMIT_KB)
