# liblargesse.so: look first, load second, load for the whole process, never a second one.
#
# A session started by `largesse run` has the library already, and so has one in which another
# front was quicker; only in the others is a file loaded, and it stays until R ends.

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

# NULL when the process has the library, loading it if need be; else why it has none. It asks again
# each time, so that a path set after library(largesse) is enough.
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

# Why large pages cannot be used here, or NULL.
unsupported <- function() {
  why <- no_library()
  if (is.null(why)) .Call(C_why_not) else why
}

# The library, or an error in the name of `call` that says why there is none.
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
