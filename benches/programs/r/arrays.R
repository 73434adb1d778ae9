# Works on large arrays: random gathers, outer products, permuted dimensions, transposes, binding and sweeping. Each
# element takes one or two operations, so that speed depends on memory.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

ends <- function(x, ...) c(sum(x), x[2], x[length(x) - 1])

measure("gather", function() {
  n <- many(1e7)
  list(x = rnorm(n), at = sample.int(n))
}, function(input) {
  once <- input$x[input$at]
  once[rev(input$at)] + input$x^2
}, ends)

measure("outer", function() list(x = runif(side(3000)), y = runif(side(3000))),
        function(input) outer(input$x, input$y) + outer(input$x, input$y, "-"), ends)

measure("aperm", function() {
  s <- given$scale^(1 / 3)
  array(rnorm(round(300 * s) * round(250 * s) * round(200 * s)),
        c(round(300 * s), round(250 * s), round(200 * s)))
}, function(a) aperm(aperm(a, c(3, 1, 2)), c(3, 2, 1)), ends)

measure("transpose", function() matrix(runif(side(3000)^2), side(3000)), function(m) {
  for (turn in 1:3) m <- t(m) + turn
  m
}, ends)

measure("bind", function() matrix(runif(side(2000)^2), side(2000)), function(m) {
  tall <- rbind(m, rev(m[1, ]), m * 2)
  wide <- cbind(tall, tall[, ncol(tall):1])
  wide[sample.int(nrow(wide)), ]
}, ends)

measure("sweep", function() matrix(rnorm(side(2500)^2), side(2500)), function(m) {
  centred <- sweep(m, 2, colMeans(m))
  scaled <- centred / rep(sqrt(colMeans(centred^2)), each = nrow(m))
  pmin(pmax(scaled, -2), 2)
}, function(m, ...) c(sum(m^2), m[1], m[length(m)]))

finish()
