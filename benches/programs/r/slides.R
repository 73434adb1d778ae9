# The examples of the slides that introduced ISM for R (Nakano and Nakama, useR! 2008). Some take long: choose with
# --only.
# "qr-1024" and "fft-2^24" have sizes that are powers of two, whose strides collide in caches.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

hilbert <- function(n) 1 / (matrix(1:n, n, n, byrow = TRUE) + 0:(n - 1))
decomposed <- function(fit, ...) abs(c(fit$qr[1, 1], fit$qr[2, 2], fit$qraux[1]))
numbers <- function(fit) fit[c("qr", "qraux", "pivot")]

measure("qr-1000", function() side(1000), function(n) qr(hilbert(n)), decomposed, numbers)
measure("qr-1024", function() side(1024), function(n) qr(hilbert(n)), decomposed, numbers)

there_and_back <- function(n) {
  x <- as.complex(seq_len(n))
  back <- fft(fft(x), inverse = TRUE) / length(x)
  list(back = back, same = all.equal(back, x))
}
agrees <- function(result, ...) c(isTRUE(result$same), Re(result$back[length(result$back)]))

measure("fft-1e7", function() many(1e7), there_and_back, agrees, function(r) r$back)
measure("fft-2^24", function() 2^round(log2(2^24 * given$scale)), there_and_back, agrees,
        function(r) r$back)

measure("lm", function() {
  responses <- many(10000)
  list(y = matrix(rnorm(responses * 5000), 5000), x = matrix(runif(100 * 5000), 5000))
}, function(input) with(input, lm(y ~ x)),
   function(fit, ...) c(sum(fit$coefficients), sum(fit$residuals[1:1000]^2)),
   function(fit) fit$coefficients)

measure("sort-1e8", function() runif(many(1e8)), function(x) sort(x),
        function(x, ...) c(sum(x), x[1], x[length(x)]))

finish()
