# Tests forked children, workers, other programs, finalisers and the profiler.
library(parallel)
RNGkind("L'Ecuyer-CMRG"); set.seed(1)
big <- lapply(1:8, function(i) rep(as.double(i), 3e5))
# Children collect, allocate, free, and return large results.
results <- mclapply(1:8, function(i) {
  invisible(gc())
  mine <- big[[i]] * 2
  big[[i]] <<- 0
  invisible(gc())
  list(sum(mine), mine[1:100000], runif(2))
}, mc.cores = 2)
cat(vapply(results, `[[`, 0, 1), "\n")
cat(vapply(results, function(r) length(r[[2]]), 0L), "\n")
cat(vapply(big, sum, 0), "\n")
# A child fails after it has used large blocks.
failed <- suppressWarnings(mclapply(1:2, function(i) if (i == 2) stop("as asked") else sum(big[[1]]), mc.cores = 2))
cat(failed[[1]], class(failed[[2]]), "\n")
# Workers are separate programs.
cluster <- makePSOCKcluster(2)
clusterSetRNGStream(cluster, 5)
cat(unlist(parLapply(cluster, 1:4, function(i) sum(rnorm(3e5)) > -1e9)), "\n")
cat(unlist(clusterApply(cluster, big[1:2], sum)), "\n")
stopCluster(cluster)
# R starts other programs.
cat(system("echo out; exit 3"), system("printf 'a b'", intern = TRUE), "\n")
cat(system2("sort", input = c("b", "a"), stdout = TRUE), "\n")
con <- pipe("cat"); cat(class(con), "\n"); close(con)
# Finalisers run once each, in the process and at its end.
e <- new.env(); e$data <- numeric(3e5)
reg.finalizer(e, function(e) cat("finalised", length(e$data), "\n"))
rm(e); invisible(gc())
kept <- new.env()
reg.finalizer(kept, function(e) cat("finalised at exit\n"), onexit = TRUE)
# The profiler interrupts by a signal.
file <- tempfile(); Rprof(file, interval = 0.002)
for (i in 1:60) x <- sort(runif(2e5))
Rprof(NULL)
cat(nrow(summaryRprof(file)$by.total) > 0, "\n")
# Errors and warnings still go to standard error.
message("to stderr")
warning("a warning")
tryCatch(numeric(1e15), error = function(e) cat(conditionMessage(e), "\n"))
cat("end\n")
quit(status = 7)
