# Forked children, workers and other programs, with gc in all of them.
source("support/start.R")
library(parallel)
ISM(TRUE)
n <- 5e5
big <- lapply(1:20, function(i) rep(as.double(i), n))
stopifnot(all(vapply(big, is_large, NA)))

# A forked child collects (writing to the header of every vector), computes, allocates and frees.
work <- function(i) {
  invisible(gc())
  mine <- big[[i]] + 1
  big[i] <<- list(NULL)
  invisible(gc())
  c(sum(mine), ISM.status()$status, is_large(mine))
}
for (round in 1:3) {
  sums <- mclapply(1:20, work, mc.cores = 2)
  stopifnot(identical(sums, lapply(1:20, function(i) c((i + 1) * n, 1, 1))))
}
stopifnot(identical(vapply(big, sum, 0), 1:20 * n))

# A child that only exits, and one that is killed, leave the parent whole.
job <- mcparallel({ big[[1]][1] <- -1; sum(big[[1]]) })
stopifnot(mccollect(job)[[1]] == n - 2, big[[1]][1] == 1)
job <- mcparallel(Sys.sleep(60))
tools::pskill(job$pid, tools::SIGKILL)
suppressWarnings(mccollect(job))
stopifnot(identical(vapply(big, sum, 0), 1:20 * n))

# Workers are sessions of their own.
cluster <- makePSOCKcluster(2)
states <- clusterEvalQ(cluster, { library(largesse); ISM(TRUE); ISM.status()[c("status", "hooked")] })
stopifnot(all(vapply(states, `[[`, NA, "status")))
clusterExport(cluster, "n")
stopifnot(identical(unlist(parLapply(cluster, 1:6, function(i) sum(rep(as.double(i), n)))), 1:6 * n))
there <- clusterEvalQ(cluster, { kept <- numeric(n); NROW(ISM.list()) })
stopifnot(unlist(there) >= 1)
stopCluster(cluster)

# Other programs start, and give their own status.
stopifnot(identical(system("echo started", intern = TRUE), "started"), system("exit 3") == 3)
stopifnot(identical(system2("sh", c("-c", "'exit 4'")), 4L))
pipe <- pipe("cat")
stopifnot(identical(readLines(textConnection(system("printf 'a\\nb\\n'", intern = TRUE))), c("a", "b")))
close(pipe)
