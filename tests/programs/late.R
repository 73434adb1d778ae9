# An R session that was started without Largesse loads the library while it runs.
arguments <- commandArgs(TRUE)
early <- rep(1, 5e5)                      # a block of the C library, given back later
dyn.load(arguments[1], local = FALSE)
shim <- dyn.load(arguments[2])
enable <- function(on) .C("enable", as.integer(on), result = 0L)$result
limits <- function(min, max) .C("limits", as.double(min), as.double(max), result = 0L)$result
facts <- function() .C("facts", enabled = 0L, hooked = 0L, blocks = 0, bytes = 0, header = 0L)
count <- function(from) .C("count", as.double(from), found = 0L, aligned = 0L)
stopifnot(facts()$hooked == 0, facts()$enabled == 0)
before <- numeric(1e6); stopifnot(count(8e6)$found == 0)
stopifnot(enable(1) == 0, facts()$hooked == 2, facts()$enabled == 1)
stopifnot(facts()$header == 48)

a <- numeric(1e6); a[] <- 1:1e6; b <- a + 1
stopifnot(count(8e6)$found == 2, count(8e6)$aligned == 1)
early[1] <- 2; early <- c(early, early); before <- NULL; invisible(gc())
stopifnot(sum(early) == 1e6 + 2, sum(b) == sum(1:1e6) + 1e6)
stopifnot(limits(1e6, 1e5) == -1, limits(1000, 1e9) == -1, limits(256 * 1024, 2^50) == 0)

# Packages with compiled code may be loaded afterwards.
suppressMessages(library(Matrix))
s <- rsparsematrix(2000, 2000, 0.05); m <- as.matrix(s)
stopifnot(count(3e7)$found >= 1, all.equal(sum(s), sum(m)))
rm(m, s); invisible(gc())
stopifnot(count(3e7)$found == 0)

# Forked children, workers and other programs run.
library(parallel)
got <- mclapply(1:4, function(i) { invisible(gc()); x <- a * i; c(sum(x), count(8e6)$found >= 3) }, mc.cores = 2)
stopifnot(identical(got, lapply(1:4, function(i) c(sum(a) * i, 1))))
cluster <- makePSOCKcluster(1); stopifnot(clusterCall(cluster, function() sum(numeric(1e6) + 1))[[1]] == 1e6); invisible(stopCluster(cluster))
stopifnot(system("exit 3") == 3, identical(system("echo out", intern = TRUE), "out"))
file <- tempfile(); Rprof(file, interval = 0.005); for (i in 1:30) x <- sort(runif(3e5)); Rprof(NULL)

# After the heap is disabled it serves no new blocks. Old ones remain valid, and can grow and be freed.
stopifnot(enable(0) == 0, facts()$enabled == 0)
had <- count(8e6)$found
c0 <- numeric(1e6); stopifnot(count(8e6)$found == had)
stopifnot(sum(b) == sum(1:1e6) + 1e6)
rm(b); invisible(gc()); stopifnot(count(8e6)$found == had - 1)
stopifnot(enable(1) == 0); d <- numeric(1e6); stopifnot(count(8e6)$found == had)
invisible(reg.finalizer(globalenv(), function(e) cat("finalised\n"), onexit = TRUE))
cat("as it should be\n")
