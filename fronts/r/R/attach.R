# Messages about masking: data.table and rlang have a `:=` too, and the package attached last is found first.

RIVALS <- c("data.table", "rlang")

.onAttach <- function(libname, pkgname) {
  why <- unsupported()
  if (!is.null(why)) packageStartupMessage("largesse: large pages cannot be used here: ", why)
  for (words in masks()) packageStartupMessage(words)
}

# Returns a message for each attached package that also has a `:=`.
masks <- function(rivals = sub("^package:", "", grep("^package:", search(), value = TRUE))) {
  place <- function(name) match(paste0("package:", name), search())
  has_one <- function(name) name != "largesse" && !is.na(place(name)) &&
    exists(":=", envir = as.environment(place(name)), inherits = FALSE)
  rivals <- Filter(has_one, rivals)
  unlist(lapply(rivals, function(name) {
    if (place("largesse") < place(name)) {
      paste0("`x := value` is largesse's and masks that of ", name, ".\n",
        "  Inside the brackets of a data.table, DT[, a := 1], it means what it always did.\n",
        "  The other one is ", name, "::`:=`.")
    } else {
      paste0("`x := value` is that of ", name, " and masks largesse's: type\n",
        "  largesse::ISM_assign(x, value), or attach largesse last.")
    }
  }))
}

# Shows the message also when such a package is attached later. The hook has a name, so that loading
# this package twice does not show it twice.
tell_of_later_masks <- function() {
  for (rival in RIVALS) {
    event <- packageEvent(rival, "attach")
    hooks <- getHook(event)
    hooks$largesse <- function(pkgname, libpath) {
      if (!"package:largesse" %in% search()) return()
      for (words in masks(pkgname)) packageStartupMessage(words)
    }
    setHook(event, hooks, "replace")
  }
}
