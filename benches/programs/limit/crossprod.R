# A matrix of 560 MB, and its cross product.
set.seed(1)
x <- matrix(runif(7e7), ncol = 70)
y <- crossprod(x)
cat(format(c(sum(y), y[1, 2], sum(x[, 70])), digits = 12), "\n")
