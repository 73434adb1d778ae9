# Large blocks are on pages of a small pool. Children collect, write and allocate.
library(parallel)
n <- 3e5
big <- lapply(1:12, function(i) rep(as.double(i), n))
work <- function(i) {
  invisible(gc())
  big[[i]][1:1000] <<- -1      # written in the child only
  mine <- big[[i]] + 1
  invisible(gc())
  sum(mine)
}
for (round in 1:3) {
  got <- mclapply(1:12, work, mc.cores = 2)
  want <- lapply(1:12, function(i) (i + 1) * (n - 1000))
  stopifnot(identical(got, want))
  big[[round]] <- big[[round]] + 0 # the parent goes on writing
}
stopifnot(identical(vapply(big, sum, 0), 1:12 * n))
cat("every child delivered\n")
