# Fills, partly sorts, and reads in two orders MIB mebibytes of vectors: Rscript larger.R MIB [cores]
# The result is the same with and without far memory.
arguments <- as.numeric(commandArgs(TRUE))
each <- 4 # mebibytes
n <- each * 2^17
vectors <- lapply(seq_len(arguments[1] / each), function(k) (seq_len(n) * (7919 + 2 * k)) %% 1000003)

# Sorting changes the order, not the sum.
before <- vapply(vectors, sum, 0)
for (k in seq(1, length(vectors), 4)) vectors[[k]] <- sort(vectors[[k]])
stopifnot(identical(vapply(vectors, sum, 0), before))

# Reads one element of each vector, then the next: every access is to another vector.
places <- round(seq(1, n, length.out = 17))[-1]
across <- vapply(places, function(place) sum(vapply(vectors, `[`, 0, place)), 0)

weighted <- function(x) sum(x * seq_len(n))
cores <- if (is.na(arguments[2])) 1 else arguments[2]
each_one <- if (cores > 1) parallel::mclapply(vectors, weighted, mc.cores = cores) else lapply(vectors, weighted)
cat(sprintf("%d MiB: %.17g %.17g %.17g\n", length(vectors) * each, sum(before), sum(across), sum(unlist(each_one))))
