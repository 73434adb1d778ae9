# Far memory in a session: chosen before the first large vector, refused with a message afterwards.
source("support/start.R")

# Each case is a session of its own, which says "done" at its end.
session <- function(...) {
  script <- tempfile(fileext = ".R")
  writeLines(c("library(largesse)", "library(parallel)", 'source("support/start.R")', ..., 'cat("done\\n")'), script)
  out <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE, stderr = TRUE))
  if (!identical(attr(out, "status"), NULL)) stop(paste(c(attr(out, "status"), out), collapse = "\n"))
  stopifnot(identical(out[length(out)], "done"))
}
store <- paste0("file:", file.path(getwd(), "far pages"))
begin <- sprintf("far_memory('16M', store = '%s')", store)

# A wrong value gets a message with the accepted values.
fails(far_memory(), "local is missing", "far_memory(\"4G\")")
fails(far_memory("much"), "local \"much\"", "512M")
fails(far_memory("1000"), "the least is 1M")
fails(far_memory("1G", store = "disk"), "store \"disk\"", "file:PATH")
fails(far_memory("1G", page_size = "5K"), "page_size \"5K\"", "power of two")
fails(far_memory(NA), "one string")
fails(far_memory(c("1G", "2G")), "one string")
fails(tuned(1, 2), "name must be one string")
stopifnot(is.null(ISM.status()$far))

# Without far memory, `tuned` returns the value and does nothing else.
stopifnot(tuned("a", 5) == 5, inherits(try(tuned("a", stop("as planned")), silent = TRUE), "try-error"))

# After a large vector it is too late, and the session goes on.
session(
  "ISM(TRUE)", "x <- ramp(1e6)",
  "fails(far_memory('16M'), 'large blocks already', 'largesse run --local')",
  "stopifnot(is.null(ISM.status()$far), sum(x) == 1e6 * (1e6 + 1) / 2)"
)

# In a session that was started with the library R's own start-up has made large blocks.
preload <- Sys.getenv("LD_PRELOAD")
if (preloaded) session("fails(far_memory('16M'), 'large blocks already', 'largesse run --local')")
Sys.unsetenv("LD_PRELOAD")

permitted <- tryCatch(
  session(begin),
  error = function(e) if (grepl("userfaultfd", conditionMessage(e))) FALSE else stop(e)
)
if (identical(permitted, FALSE)) {
  cat("skipped: userfaultfd is not permitted here\n")
  quit(status = 0)
}

# One that was started with far memory has it.
if (preloaded) {
  Sys.setenv(LD_PRELOAD = preload, LARGESSE_LOCAL = "64M", LARGESSE_FAR = store)
  session("fails(far_memory('16M'), 'has far memory already')", "stopifnot(ISM.status()$far[['local_bytes']] == 2^26)")
  Sys.unsetenv(c("LD_PRELOAD", "LARGESSE_LOCAL", "LARGESSE_FAR"))
}

# Four times more than fits: every sum is right, with gc, with_ISM, marks and children.
session(
  begin,
  "n <- 2^20",
  "x <- lapply(1:8, function(i) as.double(i) + seq_len(n))",
  "right <- vapply(1:8, function(i) n * i + n * (n + 1) / 2, 0)",
  "stopifnot(identical(vapply(x, sum, 0), right))",
  "far <- ISM.status()$far",
  "stopifnot(far[['local_bytes']] == 16 * 2^20, far[['resident_bytes']] <= 16 * 2^20)",
  "stopifnot(far[['evictions']] > 8192, far[['fills']] > 4096, far[['stored_bytes']] > 32 * 2^20)",
  "y <- with_ISM(x[[1]] * 2)",
  "x[[1]] <- NULL",
  "invisible(gc())",
  "stopifnot(sum(y) == 2 * right[1], identical(vapply(x, sum, 0), right[-1]))",
  "for (i in 1:3) s <- tuned('sum', vapply(x, sum, 0))",
  "stopifnot(identical(s, right[-1]))",
  "try(tuned('sum', stop('as planned')), silent = TRUE)",
  "stopifnot(identical(tuned('sum', sum(x[[7]])), right[8]))",
  "child <- function(v) { invisible(gc()); v[1] <- v[1] + 1; sum(v) }",
  "stopifnot(identical(unlist(mclapply(x, child, mc.cores = 2)), right[-1] + 1))",
  "stopifnot(identical(vapply(x, sum, 0), right[-1]))",
  "fails(far_memory('8M'), 'has far memory already')",
  "ISM(FALSE); z <- numeric(n); stopifnot(!is_large(z), is_large(x[[1]]), sum(x[[1]]) == right[2])"
)
stopifnot(length(list.files(pattern = "far pages")) == 0)

# The same in the memory of an agent, which the command starts.
if (!nzchar(Sys.which("largesse"))) {
  session("fails(far_memory('16M', store = 'memory:'), 'command largesse', 'PATH')")
} else {
  session(
    "far_memory('16M', store = 'memory:')",
    "n <- 2^20",
    "x <- lapply(1:6, function(i) as.double(i) + seq_len(n))",
    "right <- vapply(1:6, function(i) n * i + n * (n + 1) / 2, 0)",
    "stopifnot(identical(vapply(x, sum, 0), right), ISM.status()$far[['stored_bytes']] > 16 * 2^20)",
    "stopifnot(identical(unlist(mclapply(x, sum, mc.cores = 2)), right))"
  )
}
