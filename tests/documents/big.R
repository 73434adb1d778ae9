# The script of the guides: a regression on vectors of some MiB.
n <- 1e6
x <- seq_len(n) / n
y <- 2 * x + sin(seq_len(n))
fit <- lm(y ~ x)
print(round(unname(coef(fit)[2]), 3))
