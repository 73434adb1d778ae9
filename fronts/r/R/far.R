# Far memory: more vectors than fit, most of them in a store.

far_memory <- function(local, store = NULL, page_size = "auto") {
  call <- sys.call()
  if (missing(local)) fail('local is missing: type far_memory("4G"), or a share as "50%"', call = call)
  if (is.numeric(local) && length(local) == 1L && is.finite(local)) local <- format(local, scientific = FALSE)
  local <- one_string(local, "local", call)
  page_size <- one_string(page_size, "page_size", call)
  if (!is.null(store)) store <- store_named(one_string(store, "store", call))
  need_library(call)
  why <- .Call(C_far_memory, local, store, page_size)
  if (!is.null(why)) fail("no far memory: ", why, call = call)
  switch_to(TRUE, call)
  invisible(TRUE)
}

tuned <- function(name, expr) {
  name <- one_string(name, "name", sys.call())
  if (is.null(no_library()) && .Call(C_tune, name, TRUE) == 0L) on.exit(.Call(C_tune, name, FALSE))
  expr
}

# setwd() must not move the file, and `~` is the shell's.
store_named <- function(store) {
  if (!startsWith(store, "file:") || store == "file:") return(store)
  paste0("file:", normalizePath(sub("^file:", "", store), mustWork = FALSE))
}

# The words of far memory, or NULL.
far_now <- function(now) {
  if (now$far_local_bytes == 0) return(NULL)
  words <- unlist(now[startsWith(names(now), "far_")])
  names(words) <- sub("^far_", "", names(words))
  words
}
