# A process never has two libraries, and a message says if it has none. Each case is a session of its own.
source("support/start.R")

session <- function(code, ...) {
  script <- tempfile(fileext = ".R")
  writeLines(code, script)
  out <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script),
    stdout = TRUE, stderr = TRUE, env = c(...)))
  status <- attr(out, "status")
  if (!is.null(status)) stop("exit ", status, "\n", paste(out, collapse = "\n"))
  paste(out, collapse = "\n")
}
own <- ISM.status()$library
stopifnot(file.exists(own))

# A second file of the same library is looked at, and not loaded, when there is one already.
second <- file.path(tempdir(), "liblargesse.so")
file.copy(own, second)
copies <- c(
  "maps <- grep('liblargesse[.]so', readLines('/proc/self/maps'), value = TRUE)",
  "stopifnot(length(unique(sub('.* ', '', maps))) == 1)"
)
session(c(
  sprintf("dyn.load('%s', local = FALSE)", own), "library(largesse)", "ISM(TRUE)", copies,
  sprintf("stopifnot(identical(normalizePath(ISM.status()$library), normalizePath('%s')))", own)
), paste0("LARGESSE_LIBRARY=", second))
session(c("library(largesse)", "ISM(TRUE)", copies, "unloadNamespace('largesse')", "library(largesse)", copies))

# Preloaded: that one is used, and it is on already.
session(c(
  "library(largesse)", copies, "s <- ISM.status()",
  "stopifnot(s$support, s$status, s$hooked == 'preloaded', ISM(FALSE), !ISM.status()$status)",
  sprintf("stopifnot(identical(normalizePath(s$library), normalizePath('%s')))", second)
), paste0("LD_PRELOAD=", second))

# Without a setting, the copy that was installed with the package, which is the same file.
session(c("library(largesse)", copies, if (!preloaded) c(
  "own <- system.file('lib', 'liblargesse.so', package = 'largesse')",
  "stopifnot(nzchar(own), ISM.status()$library == own)"
)), "LARGESSE_LIBRARY=")

# The environment, then the option before it, then a path given later.
if (!preloaded) {
  session(c("library(largesse)", sprintf("stopifnot(ISM.status()$library == normalizePath('%s'))", second)),
    paste0("LARGESSE_LIBRARY=", second))
  out <- session(c(
    "library(largesse)",
    "s <- ISM.status()",
    "stopifnot(!s$support, !s$status, grepl('/no/such/file', s$why), s$hooked == 'no', is.null(ISM.list()))",
    "stopifnot(identical(ISM(FALSE), FALSE), identical(ISM.trim(), 0))",
    "e <- tryCatch(ISM(TRUE), largesse_error = identity)",
    "stopifnot(grepl('/no/such/file', conditionMessage(e)), grepl('LARGESSE_LIBRARY', conditionMessage(e)))",
    "stopifnot(inherits(tryCatch(x := 1, error = identity), 'largesse_error'), !exists('x'))",
    sprintf("options(largesse.library = '%s')", second),
    "ISM(TRUE)", "stopifnot(ISM.status()$status)", copies
  ), "LARGESSE_LIBRARY=/no/such/file")
  stopifnot(grepl("large pages cannot be used here", out))
  wrong <- file.path(tempdir(), "wrong.so")
  writeLines("not a library", wrong)
  session(c("library(largesse)", "stopifnot(!ISM.status()$support, nzchar(ISM.status()$why))"),
    paste0("LARGESSE_LIBRARY=", wrong))
}
