# Two forked workers, each of which changes half of 512 MiB.
library(parallel)
x <- lapply(1:64, function(k) rep_len(k + 0.5, 2^20))
f <- function(i) {
    for (k in seq(i, 64, by = 2)) x[[k]][seq(1, 2^20, by = 64)] <- i
    sum(vapply(x, sum, 0))
}
cat(format(c(unlist(mclapply(1:2, f, mc.cores = 2)), sum(vapply(x, sum, 0))), digits = 15), "\n")
