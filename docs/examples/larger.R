# Vectors, sorted, summed and read again, MIB mebibytes in all: Rscript larger.R MIB [cores]
# The answer does not depend on where the vectors are.
arguments <- as.numeric(commandArgs(TRUE))
each <- 16 # mebibytes
n <- each * 2^17
vectors <- lapply(seq_len(arguments[1] / each), function(k) (seq_len(n) * (7919 + 2 * k)) %% 1000003)

# Sorted one by one: the sum does not change, the order does.
before <- vapply(vectors, sum, 0)
for (k in seq_along(vectors)) vectors[[k]] <- sort(vectors[[k]])
stopifnot(identical(vapply(vectors, sum, 0), before))

# Across all vectors, row by row of blocks.
rows <- round(seq(1, n, length.out = 4097))[-1]
across <- vapply(seq_len(4096), function(i) sum(vapply(vectors, `[`, 0, rows[i])), 0)

work <- function(x) sum(x * seq_len(n))
cores <- if (is.na(arguments[2])) 1 else arguments[2]
weighted <- unlist(if (cores > 1) parallel::mclapply(vectors, work, mc.cores = cores) else lapply(vectors, work))
cat(sprintf("%d MiB: %.17g %.17g %.17g\n", length(vectors) * each, sum(before), sum(across), sum(weighted)))
