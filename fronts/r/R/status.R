# The state of the library, and its blocks.

HOOKED <- c("no", "preloaded", "patched", "functions")
PAGES <- c("auto", "thp", "hugetlb", "hugetlb-1g", "64k", "4k")

ISM.status <- function() {
  why <- unsupported()
  if (!is.null(no_library())) {
    return(list(
      support = FALSE, status = FALSE, minKB = NA_real_, maxKB = NA_real_, largepagesize = NA_real_,
      why = why, hooked = "no", library = NA_character_
    ))
  }
  now <- stats_now(sys.call())
  list(
    support = is.null(why), status = now$enabled == 1,
    minKB = kib(now$min_bytes), maxKB = kib(now$max_bytes), largepagesize = now$large_page_bytes / 1024,
    why = why, hooked = HOOKED[now$hooked + 1], library = .Call(C_library_path),
    version = paste(now$version %/% 65536, now$version %% 65536, sep = "."),
    pages = PAGES[now$pages + 1], header = now$header,
    blocks = now$blocks, bytes = now$live_bytes, peak = now$peak_bytes, retained = now$retained_bytes,
    allocations = now$allocations, frees = now$frees, reused = now$reused,
    not_granted = not_granted(now), far = far_now(now)
  )
}

# Returns one row for each cause of a refused request.
not_granted <- function(now) {
  causes <- data.frame(cause = now$cause, count = now$count, advice = now$advice, stringsAsFactors = FALSE)
  causes <- causes[causes$count > 0, ]
  rownames(causes) <- NULL
  causes
}

ISM.list <- function() {
  if (!is.null(no_library())) return(NULL)
  columns <- .Call(C_blocks)
  if (is.null(columns)) NULL else data.frame(columns, stringsAsFactors = FALSE)
}
