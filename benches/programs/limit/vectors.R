# 64 vectors of 8 MiB, each changed and summed three times.
x <- lapply(1:64, function(k) rep_len(k + 0.5, 2^20))
for (round in 1:3) for (k in 1:64) x[[k]][round * 1000 + k] <- round
cat(format(sum(vapply(x, sum, 0)), digits = 15), "\n")
