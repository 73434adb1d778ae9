# Makes and drops vectors of many sizes, computes regressions with many responses and running sums: the heap gets many
# requests for large blocks of slightly different sizes.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

# Lengths are between 1000 and 1e6 at full scale, evenly spread on a logarithmic axis.
lengths_of <- function(count) pmax(10, round(10^(3 + 3 * ((seq_len(count) * 0.618034) %% 1)) * given$scale))

measure("churn", function() lengths_of(1500), function(lengths) {
  held <- vector("list", 100)
  total <- 0
  for (i in seq_along(lengths)) {
    slot <- (i * 37) %% 100 + 1
    if (!is.null(held[[slot]])) total <- total + held[[slot]][1] + length(held[[slot]])
    held[[slot]] <- seq_len(lengths[i]) / i
  }
  c(total, vapply(held, sum, 0))
}, function(x, ...) c(x[1], sum(x[-1])))

measure("running", function() lapply(lengths_of(120), runif), function(vectors) {
  sums <- lapply(vectors, cumsum)
  peaks <- lapply(sums, function(s) cummax(s - seq_along(s) / 2))
  Map(function(s, p) rev(s + p), sums, peaks)
}, function(vectors, ...) c(sum(vapply(vectors, sum, 0)), vectors[[1]][1]))

measure("grow", function() many(3e6), function(n) {
  grown <- numeric()
  step <- max(1, n %/% 40)
  while (length(grown) < n) grown <- c(grown, length(grown) + seq_len(step))
  pieces <- split(grown, rep_len(1:7, length(grown)))
  unlist(pieces, use.names = FALSE)
}, function(x, ...) c(length(x), sum(x), x[length(x)]))

measure("regressions", function() {
  responses <- many(2000)
  list(x = matrix(runif(100 * 5000), 5000), y = matrix(rnorm(5000 * responses), 5000))
}, function(input) lm.fit(input$x, input$y)[c("coefficients", "residuals")],
   function(fit, ...) c(sum(fit$coefficients), sum(fit$residuals^2)))

measure("residuals", function() {
  responses <- many(1000)
  list(x = cbind(1, matrix(runif(20 * 5000), 5000)), y = matrix(rnorm(5000 * responses), 5000))
}, function(input) {
  fit <- lm.fit(input$x, input$y)
  centred <- input$y - rep(colMeans(input$y), each = nrow(input$y))
  1 - colSums(fit$residuals^2) / colSums(centred^2)
}, function(r2, ...) c(sum(r2), r2[1]))

finish()
