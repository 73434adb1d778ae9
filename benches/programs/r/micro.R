# Runs single operations, each of which shows one effect.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

# Compares page faults with additions: allocates the result of an addition and drops the one before.
measure("add", function() matrix(runif(side(3000)^2), side(3000)), function(m) {
  for (turn in 1:20) sum <- m + turn
  sum
}, function(m, ...) c(sum(m), m[1]))

# Shows address translation: random reads all over 400 MB.
measure("gather", function() {
  n <- many(5e7)
  list(x = as.numeric(seq_len(n)), at = sample.int(n))
}, function(input) input$x[input$at],
   function(x, ...) c(sum(x), x[1], x[length(x)]))

measure("sort", function() runif(many(7e6)), function(x) sort(x),
        function(x, ...) c(sum(x), x[1], x[length(x)]))

finish()
