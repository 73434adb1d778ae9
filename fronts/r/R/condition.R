# Every error of this package is a condition of class `largesse_error`: its call is the call the
# user typed, and its message says what to type instead.

fail <- function(..., call = sys.call(-1L)) {
  stop(structure(
    class = c("largesse_error", "error", "condition"),
    list(message = paste0(...), call = call)
  ))
}

# The largest accepted size in KiB: 2^50 bytes, more than a process can address.
NO_LIMIT_KB <- 2^40
SMALLEST_KB <- 64

# Checks that `value` is one finite number of KiB from `least` to `most`; an error names `call`.
kilobytes <- function(value, name, call, least = SMALLEST_KB, most = NO_LIMIT_KB) {
  shown <- paste(deparse(value, nlines = 1L), collapse = "")
  wanted <- paste0(
    " must be one number of KiB from ", format(least), " to 2^40",
    if (name == "maxKB") " (2^40: no limit)", ", not ", shown
  )
  if (!is.numeric(value) || is.factor(value) || length(value) != 1L) fail(name, wanted, call = call)
  if (is.na(value) || value < least || value > most) fail(name, wanted, call = call)
  as.double(value)
}

# Checks that `value` is one string; an error names `call`.
one_string <- function(value, name, call) {
  if (!is.character(value) || length(value) != 1L || is.na(value) || !nzchar(value)) {
    fail(name, " must be one string, not ", deparse(value, nlines = 1L)[1L], call = call)
  }
  value
}

# Checks that `value` is TRUE or FALSE; an error names `call`.
flag <- function(value, name, call) {
  if (!is.logical(value) || length(value) != 1L || is.na(value)) {
    fail(name, " must be TRUE or FALSE, not ", deparse(value, nlines = 1L)[1L], call = call)
  }
  value
}
