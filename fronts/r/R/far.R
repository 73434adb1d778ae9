# Far memory: large vectors that do not fit into memory are kept in a store.

far_memory <- function(local, store = NULL, page_size = "auto") {
  call <- sys.call()
  if (missing(local)) fail('local is missing: type far_memory("4G"), or a share as "50%"', call = call)
  if (is.numeric(local) && length(local) == 1L && is.finite(local)) local <- format(local, scientific = FALSE)
  local <- one_string(local, "local", call)
  page_size <- one_string(page_size, "page_size", call)
  if (!is.null(store)) store <- store_named(one_string(store, "store", call), call)
  need_library(call)
  why <- .Call(C_far_memory, local, store, page_size)
  if (!is.null(why)) fail("no far memory: ", why, call = call)
  switch_to(TRUE, call)
  invisible(TRUE)
}

memory_limit <- function(limit, store = NULL) {
  call <- sys.call()
  if (missing(limit)) fail('limit is missing: type memory_limit("8G"), or memory_limit("auto")', call = call)
  if (is.numeric(limit) && length(limit) == 1L && is.finite(limit)) limit <- format(limit, scientific = FALSE)
  limit <- one_string(limit, "limit", call)
  if (!is.null(store)) store <- store_named(one_string(store, "store", call), call)
  need_library(call)
  why <- .Call(C_memory_limit, limit, store)
  if (!is.null(why)) fail("no limit: ", why, call = call)
  switch_to(TRUE, call)
  invisible(TRUE)
}

tuned <- function(name, expr) {
  name <- one_string(name, "name", sys.call())
  if (is.null(no_library()) && .Call(C_tune, name, TRUE) == 0L) on.exit(.Call(C_tune, name, FALSE))
  expr
}

# Returns the store's name for the library. Paths of files are made absolute, because of `~` and setwd().
# For other stores it starts an agent that lives as long as this session.
store_named <- function(store, call) {
  if (startsWith(store, "file:") && store != "file:")
    return(paste0("file:", normalizePath(sub("^file:", "", store), mustWork = FALSE)))
  if (grepl("^(file|agent):", store) || !grepl(":", store, fixed = TRUE)) return(store)
  largesse <- Sys.which("largesse")
  if (largesse == "") fail("no far memory: this store needs the command largesse, which is not in PATH", call = call)
  # The store's name may contain a password, and arguments are readable by all users: use standard input.
  words <- c("agent", "--store", "-", "--owner", Sys.getpid())
  name <- suppressWarnings(system2(largesse, words, stdout = TRUE, input = store))
  if (length(name) != 1L) fail("no far memory: the agent was not started", call = call)
  name
}

# Returns the counters of far memory, or NULL if there is none.
far_now <- function(now) {
  if (now$far_local_bytes == 0) return(NULL)
  words <- unlist(now[startsWith(names(now), "far_")])
  names(words) <- sub("^far_", "", names(words))
  words
}
