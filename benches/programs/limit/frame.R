# A data frame of 8 million rows, sorted and aggregated.
set.seed(1)
n <- 8e6
d <- data.frame(key = sample.int(1000L, n, TRUE), a = runif(n), b = runif(n))
s <- d[order(d$key, d$a), ]
m <- tapply(s$b, s$key, mean)
cat(format(c(sum(m), m[[500]], s$a[n / 2]), digits = 15), "\n")
