# data.table's `:=` and ours: the one attached last is found, both say so, and [ ] is unharmed.
source("support/start.R")
if (!requireNamespace("data.table", quietly = TRUE)) {
  cat("skipped: data.table is not installed\n")
  quit(status = 0)
}

said_by <- function(expr) {
  said <- character()
  withCallingHandlers(expr, packageStartupMessage = function(m) {
    said <<- c(said, conditionMessage(m))
    invokeRestart("muffleMessage")
  })
  paste(said, collapse = "")
}
in_brackets <- function() {
  d <- data.table::data.table(a = 1:3)
  d[, b := a * 2L]
  stopifnot(identical(d$b, c(2L, 4L, 6L)))
}

# data.table after us.
words <- said_by(library(data.table))
stopifnot(grepl("that of data.table and masks largesse's", words), grepl("largesse::ISM_assign", words))
failed <- tryCatch(x := 1, error = identity)
stopifnot(inherits(failed, "error"), !inherits(failed, "largesse_error"))
largesse::ISM_assign(x, 2)
stopifnot(x == 2)
in_brackets()

# We after data.table.
detach("package:largesse")
words <- said_by(library(largesse))
stopifnot(grepl("is largesse's and masks that of data.table", words), grepl("DT[, a := 1]", words, fixed = TRUE))
x := 3
stopifnot(x == 3)
in_brackets()

# Without another package there is no message.
detach("package:data.table")
detach("package:largesse")
stopifnot(!grepl("mask", said_by(library(largesse))))
