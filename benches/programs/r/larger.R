# Fills, partly sorts, and reads in two orders 256 MiB of vectors, as docs/examples/larger.R does.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

n <- 4 * 2^17 # a vector has 4 MiB
vectors_of <- function() lapply(seq_len(many(64)), function(k) (seq_len(n) * (7919 + 2 * k)) %% 1000003)

measure("larger", vectors_of, function(vectors) {
  for (k in seq(1, length(vectors), 4)) vectors[[k]] <- sort(vectors[[k]])
  # One element of each vector, then the next: every access is to another vector.
  places <- round(seq(1, n, length.out = 17))[-1]
  across <- vapply(places, function(place) sum(vapply(vectors, `[`, 0, place)), 0)
  c(sum(vapply(vectors, sum, 0)), across, sum(vapply(vectors, function(x) sum(x * seq_len(n)), 0)))
}, function(sums, ...) c(sums[1], sum(sums[-1])))

finish()
