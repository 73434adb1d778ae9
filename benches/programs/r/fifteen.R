# The fifteen tests of R-benchmark-25, rewritten from their published descriptions. Sizes are those the original
# really uses if its labels say otherwise: the power is of a 2500 x 2500 matrix, the regression is 2000 x 2000, the
# eigenvalues are of a 600 x 600 matrix.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))
suppressPackageStartupMessages(library(Matrix))

normal <- function(n) matrix(rnorm(n * n), n, n)
normal_Matrix <- function(n) new("dgeMatrix", x = rnorm(n * n), Dim = c(n, n))
nothing <- function() NULL
corners <- function(m, ...) c(sum(m), m[1, 1], m[nrow(m), 1], m[1, ncol(m)])

# I. Matrix calculation

measure("creation", nothing, function(input) {
  n <- as.integer(side(2500))
  b <- t(matrix(rnorm(n * n) / 10, n, n))
  dim(b) <- c(n %/% 2L, n * 2L)
  t(b)
}, corners)

measure("power", function() abs(normal(side(2500)) / 2), function(a) a^1000,
        function(b, a) c(sum(b == 0), sum(is.infinite(b)), b[which.min(abs(a - 1))]))

measure("sort", function() runif(many(7e6)), function(x) sort(x),
        function(x, ...) c(sum(x), x[1], x[length(x)]))

measure("crossprod", function() normal(side(2800)), function(a) crossprod(a), corners)

measure("regression", function() {
  n <- as.integer(side(2000))
  list(a = normal_Matrix(n), b = as.numeric(seq_len(n)))
}, function(input) solve(crossprod(input$a), crossprod(input$a, input$b)),
   function(x, ...) sqrt(sum(x@x^2)), function(x) x@x)

# II. Matrix functions

measure("fft", function() rnorm(many(2.4e6)), function(x) fft(x),
        function(z, ...) c(Re(z[1]), Re(z[2]), Im(z[3]), Mod(z[length(z) %/% 2])))

measure("eigenvalues", function() normal(side(600)),
        function(a) eigen(a, symmetric = FALSE)$values,
        function(z, ...) c(Mod(z[1]), sum(Re(z)), sum(Mod(z))))

measure("determinant", function() normal(side(2500)), function(a) determinant(a),
        function(d, ...) c(d$modulus, d$sign), function(d) c(d$modulus, d$sign))

measure("cholesky", function() crossprod(normal_Matrix(as.integer(side(3000)))),
        function(a) chol(a), function(u, ...) c(sum(diag(u)), u[1, 1], u[1, ncol(u)]), function(u) u@x)

measure("inverse", function() normal_Matrix(as.integer(side(1600))), function(a) solve(a),
        function(b, ...) c(sum(diag(b)), b[1, ncol(b)]), function(b) b@x)

# III. Programming

measure("fibonacci", function() c(10, floor(runif(many(3.5e6)) * 1000)), function(n) {
  golden <- (1 + sqrt(5)) / 2
  (golden^n - (1 - golden)^n) / sqrt(5)
}, function(f, ...) c(f[1], max(f), f[length(f)]))

measure("hilbert", nothing, function(input) {
  n <- side(3000)
  1 / (matrix(1:n, n, n, byrow = TRUE) + 0:(n - 1))
}, corners)

measure("divisors", function() {
  n <- many(400000)
  list(a = ceiling(runif(n) * 1000), b = ceiling(runif(n) * 1000))
}, function(input) {
  euclid <- function(a, b) {
    open <- b > 0
    if (!any(open)) return(a)
    rest <- a %% b
    a[open] <- b[open]
    b[open] <- rest[open]
    euclid(a, b)
  }
  euclid(input$a, input$b)
}, function(d, ...) c(sum(d), max(d), sum(d == 1)))

measure("toeplitz", nothing, function(input) {
  n <- side(500)
  m <- matrix(0, n, n)
  for (column in 1:n) for (row in 1:n) m[row, column] <- abs(row - column) + 1
  m
}, corners)

# Escoufier's method orders the variables so that each prefix has the largest RV coefficient with all of them,
#   RV(K) = tr(S[, K] S[K, ]) / sqrt(tr(S S) tr(S[K, K]^2)),   S = the correlations.
# The coefficients are computed from the data again for every candidate, as in an interactive analysis.
measure("escoufier", function() normal(side(45)), function(x) {
  whole <- cor(x)
  total <- sum(diag(whole %*% whole))
  chosen <- integer()
  best <- numeric()
  while (length(chosen) < ncol(x)) {
    top <- -Inf
    for (candidate in setdiff(seq_len(ncol(x)), chosen)) {
      trial <- c(chosen, candidate)
      outer <- cor(x[, trial, drop = FALSE], x)
      inner <- cor(x[, trial, drop = FALSE])
      rv <- sum(diag(crossprod(outer))) / sqrt(total * sum(diag(inner %*% inner)))
      if (rv > top) {
        top <- rv
        winner <- candidate
      }
    }
    chosen <- c(chosen, winner)
    best <- c(best, top)
  }
  c(chosen, best)
}, function(r, ...) c(sum(r * seq_along(r)), r[1]))

finish()
