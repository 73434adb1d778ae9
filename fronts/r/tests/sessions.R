# Other uses of a session: finalisers, profiling, packages and shared objects that come and go.
source("support/start.R")
ISM(TRUE)
n <- 1e6

# Finalisers run once, at gc, and may allocate.
ran <- 0
local({
  owner <- new.env()
  owner$data <- numeric(n)
  reg.finalizer(owner, function(e) { ran <<- ran + 1; big <- e$data + 1; stopifnot(sum(big) == n) })
})
invisible(gc()); invisible(gc())
stopifnot(ran == 1)

# The profiler interrupts with signals while blocks come and go.
profile <- tempfile()
Rprof(profile, interval = 0.002, memory.profiling = TRUE)
used <- function() sum(proc.time()[1:2])
until <- used() + 0.6
while (used() < until) x <- sort(runif(2e5))
Rprof(NULL)
stopifnot(file.size(profile) > 0, sum(summaryRprof(profile)$by.self$self.time) > 0.2)

# Packages loaded after ISM(TRUE).
if (requireNamespace("Matrix", quietly = TRUE)) {
  library(Matrix)
  m <- Matrix(rep(c(0, 1, 0, 0, 2), 2e5), 1000)
  stopifnot(sum(m) == 6e5, identical(dim(m %*% t(m)), c(1000L, 1000L)))
  s <- solve(Diagonal(600) + crossprod(Matrix(1:3.6e5 / 3.6e5, 600)))
  stopifnot(is(s, "Matrix"))
  detach("package:Matrix", unload = TRUE)
} else cat("skipped: Matrix is not installed\n")
invisible(gc())

# A shared object of the user's, loaded, used and unloaded again and again, whose memory is
# freed by its last owner: blocks cross from R to it and back.
writeLines(c(
  "#include <stdlib.h>", "#include <string.h>", "#include <R.h>", "#include <Rinternals.h>",
  "SEXP round_trip(SEXP n) {",
  "  size_t bytes = (size_t)asReal(n); unsigned char *p = malloc(bytes), *q; size_t sum = 0;",
  "  memset(p, 1, bytes); q = realloc(p, 2 * bytes);",
  "  for (size_t i = 0; i < bytes; i++) sum += q[i];",
  "  free(q); double *z = R_Calloc(bytes, double); z[bytes - 1] = 1; z = R_Realloc(z, 2 * bytes, double);",
  "  sum += (size_t)z[bytes - 1]; R_Free(z);",
  "  return ScalarReal((double)sum); }"
), "loaded.c")
R <- file.path(R.home("bin"), "R")
compiler <- strsplit(system2(R, c("CMD", "config", "CC"), stdout = TRUE), " ")[[1]][1]
if (nzchar(Sys.which(compiler))) {
  stopifnot(system2(R, c("CMD", "SHLIB", "loaded.c"), stdout = FALSE) == 0)
  for (i in 1:20) {
    object <- dyn.load(paste0("loaded", .Platform$dynlib.ext))
    stopifnot(.Call(getNativeSymbolInfo("round_trip", object), 2^20) == 2^20 + 1)
    dyn.unload(object[["path"]])
    y <- numeric(n)
  }
} else cat("skipped: no compiler\n")
unlink(c("loaded.c", "loaded.o", "loaded.so"))

# Our own package may go and come back; the library and its blocks stay.
kept <- ramp(n)
detach("package:largesse", unload = TRUE)
z <- numeric(n)
stopifnot(kept[n] == n)
library(largesse)
stopifnot(ISM.status()$status, is_large(kept), is_large(z))
