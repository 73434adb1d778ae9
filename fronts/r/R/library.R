# Finds or loads liblargesse.so, globally and at most once in a process.
#
# A session started by `largesse run`, or in which another package loaded the library, has it already.
# In any other session a file is loaded, and stays loaded until R ends.

own_copy <- function() {
  chosen <- getOption("largesse.library", Sys.getenv("LARGESSE_LIBRARY"))
  if (!is.character(chosen) || length(chosen) != 1L || is.na(chosen)) {
    return(structure("", why = "options(largesse.library=) must be the path of liblargesse.so"))
  }
  if (nzchar(chosen)) {
    return(if (file.exists(chosen)) normalizePath(chosen) else structure("", why = paste0(
      "there is no file ", chosen, ": set LARGESSE_LIBRARY or options(largesse.library=) to liblargesse.so"
    )))
  }
  path <- file.path(getNamespaceInfo("largesse", "path"), "lib", "liblargesse.so")
  if (file.exists(path)) path else structure("", why = paste0(
    "the package was installed without liblargesse.so: set LARGESSE_LIBRARY to its path, ",
    "or start R by `largesse run -- R`"
  ))
}

# Loads the library if the process has none. Returns NULL, or the reason why it has none.
# Each call tries again, so that a path may be set after library(largesse).
no_library <- function() {
  found <- .Call(C_find_library)
  if (!identical(found, FALSE)) return(found)
  path <- own_copy()
  if (!nzchar(path)) return(attr(path, "why"))
  problem <- .Call(C_load_library, path)
  if (is.null(problem)) problem <- .Call(C_find_library)
  if (identical(problem, FALSE)) problem <- paste(path, "is not liblargesse.so")
  problem
}

# Returns the reason why large pages cannot be used, or NULL if they can.
unsupported <- function() {
  why <- no_library()
  if (is.null(why)) .Call(C_why_not) else why
}

# Fails in the name of `call`, with the reason, if large pages cannot be used.
need_library <- function(call) {
  why <- unsupported()
  if (!is.null(why)) fail("large pages cannot be used here: ", why, call = call)
}

stats_now <- function(call = sys.call(-1L)) {
  now <- .Call(C_stats)
  if (!is.list(now)) fail("liblargesse.so refused the request for its statistics (", now,
    "): install it and this package from one release", call = call)
  now
}

.onLoad <- function(libname, pkgname) {
  no_library()
  tell_of_later_masks()
  register_vignette_engine(pkgname)
}
