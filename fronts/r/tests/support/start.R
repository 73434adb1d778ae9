# Read by every test: the package, and a few small checks.

library(largesse)

# Without the library there is nothing to test here; `make check` says that there must be one.
if (!ISM.status()$support) {
  if (nzchar(Sys.getenv("LARGESSE_TESTS_NEED_LIBRARY"))) stop("no library: ", ISM.status()$why)
  cat("skipped:", ISM.status()$why, "\n")
  quit(status = 0)
}

preloaded <- ISM.status()$hooked == "preloaded"

# The vector's row in ISM.list(), found by its address: one row, or none (NULL when the list is empty).
block_of <- function(x) {
  address <- sub("^@([0-9a-f]+) .*", "0x\\1", utils::capture.output(.Internal(inspect(x)))[1])
  blocks <- ISM.list()
  blocks[blocks$address == address, ]
}

is_large <- function(x) NROW(block_of(x)) == 1L

# 1, 2, ..., n in memory; as.double(seq_len(n)) is a compact formula until it is written to.
ramp <- function(n) seq_len(n) + 0

# The expression raises a largesse_error whose message has every one of `words`.
fails <- function(expr, ...) {
  condition <- tryCatch({ expr; NULL }, error = identity)
  if (is.null(condition)) stop("no error from ", deparse(substitute(expr))[1])
  if (!inherits(condition, "largesse_error")) stop("not a largesse_error: ", conditionMessage(condition))
  for (word in c(...)) {
    if (!grepl(word, conditionMessage(condition), fixed = TRUE)) {
      stop("\"", word, "\" is not in \"", conditionMessage(condition), "\"")
    }
  }
  invisible(condition)
}
