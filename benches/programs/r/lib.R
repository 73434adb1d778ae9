# Functions shared by the programs of this folder, which measure one test at a time and print one JSON object a line.
#
#   Rscript PROGRAM.R [--scale F] [--times N] [--only TEST[,TEST]]
#
# --scale F  the share of the data: vectors of n become n * F, n x n matrices n * sqrt(F) a side
# --times N  repetitions of each test; `seconds` is their mean
# --only     these tests and no others
#
# `answer` is a few numbers that a wrong result would change; `bits` is a checksum of every byte of the result. Both
# are computed after the clock has stopped, in pieces too small to raise the peak of resident memory.

invisible(loadNamespace("tools")) # now, not between two tests

given <- local({
  chosen <- list(scale = "1", times = "1", only = "")
  words <- commandArgs(trailingOnly = TRUE)
  while (length(words) > 0) {
    name <- sub("^--", "", words[1])
    if (!startsWith(words[1], "--") || !name %in% names(chosen) || length(words) < 2)
      stop("not understood: ", words[1], "; accepted are --scale F, --times N, --only TEST[,TEST]",
           call. = FALSE)
    chosen[[name]] <- words[2]
    words <- words[-(1:2)]
  }
  scale <- suppressWarnings(as.numeric(chosen$scale))
  times <- suppressWarnings(as.integer(chosen$times))
  if (!isTRUE(scale > 0)) stop("--scale must be a number above 0", call. = FALSE)
  if (!isTRUE(times >= 1)) stop("--times must be at least 1", call. = FALSE)
  list(scale = scale, times = times, only = strsplit(chosen$only, ",", fixed = TRUE)[[1]])
})

# Return the length of a vector, and the (always even) side of a square matrix, at this scale.
many <- function(n) max(16, round(n * given$scale))
side <- function(n) max(8, 2 * round(n * sqrt(given$scale) / 2))

# Holds the command to run before the clock starts, which lets every setting start with memory that the
# machine really has (see benches/engine/src/warm.rs).
touch <- Sys.getenv("LARGESSE_BENCH_TOUCH")

state <- new.env()
state$seen <- character()
state$hugetlb_kb <- 0

# Runs one test: `setup()` makes the input, `body(input)` is timed, `answer(result, input)` returns numbers,
# `bits(result)` the part of the result that is compared byte by byte.
measure <- function(name, setup, body, answer, bits = identity) {
  state$seen <- c(state$seen, name)
  if (length(given$only) > 0 && !name %in% given$only) return(invisible())
  spent <- 0
  for (repetition in seq_len(given$times)) {
    result <- NULL
    input <- NULL
    set.seed(20100709)
    input <- setup()
    gc()
    if (nzchar(touch)) system(touch)
    start <- as.numeric(Sys.time())
    result <- body(input)
    spent <- spent + (as.numeric(Sys.time()) - start)
    state$hugetlb_kb <- max(state$hugetlb_kb, status_kb("HugetlbPages"))
  }
  numbers <- as.numeric(answer(result, input))
  if (!all(is.finite(numbers))) stop(name, ": the answer is not finite", call. = FALSE)
  cat(sprintf('{"test":"%s","seconds":%.7f,"answer":[%s],"bits":"%s"}\n', name, spent / given$times,
              paste(sprintf("%.15g", numbers), collapse = ","), checksum(bits(result))))
}

# Prints the last line of every program. The largest total of hugetlb pages at the end of a test is printed, too,
# since VmHWM leaves it out.
finish <- function() {
  unknown <- setdiff(given$only, state$seen)
  if (length(unknown) > 0)
    stop("no such test: ", paste(unknown, collapse = ", "), "; there are ",
         paste(state$seen, collapse = ", "), call. = FALSE)
  cat(sprintf('{"peak_kb":%.0f,"hugetlb_kb":%.0f,"about":"R %s, BLAS %s"}\n', status_kb("VmHWM"),
              state$hugetlb_kb, getRversion(), extSoftVersion()[["BLAS"]]))
}

status_kb <- function(field) {
  line <- grep(paste0("^", field, ":"), readLines("/proc/self/status"), value = TRUE)
  if (length(line) == 0) 0 else as.numeric(gsub("[^0-9]", "", line[1]))
}

# Returns a checksum of the bytes of a vector, or of every vector in a list.
checksum <- function(x) {
  file <- tempfile()
  on.exit(unlink(file))
  sum_of <- function(bytes) {
    writeBin(bytes, file)
    unname(tools::md5sum(file))
  }
  pieces <- function(x) {
    if (is.list(x)) return(unlist(lapply(seq_along(x), function(i) pieces(.subset2(x, i)))))
    if (is.logical(x)) x <- as.integer(x)
    attributes(x) <- NULL
    starts <- seq(1, max(length(x), 1), by = 5e5)
    vapply(starts, function(s) sum_of(x[s:min(s + 5e5 - 1, length(x))]), "")
  }
  sums <- pieces(x)
  if (length(sums) == 1) sums else sum_of(sums)
}
