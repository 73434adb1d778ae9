# The same bits with and without: what R computes does not depend on where its vectors are.
source("support/start.R")

hilbert <- function(n) 1 / (matrix(1:n, n, n, byrow = TRUE) + 0:(n - 1))
programs <- list(
  qr = function() qr(hilbert(400)),
  sort = function() { set.seed(1); x <- runif(1e6); list(sort(x), order(x), rank(x)) },
  fft = function() { x <- as.complex(1:2^18); fft(fft(x), inverse = TRUE) },
  lm = function() {
    set.seed(123)
    y <- matrix(rnorm(500 * 400), 400)
    x <- matrix(runif(20 * 400), 400)
    unclass(lm(y ~ x))[c("coefficients", "residuals", "fitted.values", "effects")]
  },
  matrices = function() {
    set.seed(2)
    a <- matrix(rnorm(500^2), 500)
    list(crossprod(a), solve(a), svd(a), aperm(array(a, c(50, 10, 500)), 3:1))
  },
  frames = function() {
    set.seed(3)
    d <- data.frame(k = sample(1000L, 3e5, TRUE), v = rnorm(3e5))
    list(d[order(d$k), ], tapply(d$v, d$k, sum), merge(d[1:2000, ], aggregate(v ~ k, d, mean), by = "k"))
  },
  text = function() { s <- sprintf("%07d", 3e5:1); list(sort(s), paste0(s, "x"), unserialize(serialize(s, NULL))) },
  growth = function() { x <- integer(); for (i in 1:20) x <- c(x, seq_len(1e5)); x[seq(1, length(x), 7)] <- 0L; x }
)

for (name in names(programs)) {
  ISM(FALSE)
  without <- serialize(programs[[name]](), NULL)
  taken <- ISM.status()$allocations
  stopifnot(identical(ISM.status()$allocations, taken))
  with <- with_ISM(serialize(programs[[name]](), NULL))
  # A run that took no block would prove nothing.
  if (ISM.status()$allocations == taken) stop(name, " took no large block")
  if (!identical(with, without)) stop(name, " gave other bits under ISM")
  cat(name, ": same ", length(with), " bytes\n", sep = "")
}
