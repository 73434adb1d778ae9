# A limit in a session: set while large vectors exist, changed later, refused with words.
source("support/start.R")

fails(memory_limit(), "limit is missing", "memory_limit(\"8G\")")
fails(memory_limit("much"), "limit \"much\"", "auto")
fails(memory_limit("1M"), "the least, 64M")
fails(memory_limit(NA), "one string")
fails(memory_limit("1G", store = "memory:"), "file:PATH")

script <- tempfile(fileext = ".R")
writeLines(c(
  'library(largesse); source("support/start.R")',
  'ISM(TRUE); x <- lapply(1:6, function(k) ramp(2^20) + k)',
  'tryCatch(memory_limit("160M"), error = function(e) { cat("skipped:", conditionMessage(e), "\\n"); quit() })',
  'right <- vapply(1:24, function(k) 2^20 * k + 2^19 * (2^20 + 1), 0)',
  'x <- c(x, lapply(7:24, function(k) ramp(2^20) + k))',
  'stopifnot(identical(vapply(x, sum, 0), right), ISM.status()$far[["evictions"]] > 0)',
  'memory_limit("1G")',
  'fails(memory_limit("1G", store = "file:x"), "chosen with the first limit")',
  'stopifnot(identical(vapply(x, sum, 0), right)); cat("done\\n")'
), script)
said <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE)
if (!grepl("^(done|skipped)", said[length(said)])) stop(paste(said, collapse = "\n"))
