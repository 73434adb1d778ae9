# Processors, NUMA nodes and time.

machine <- function() {
  need_placement(sys.call())
  seen <- .Call(C_machine)
  names <- as.character(seen$nodes)
  list(
    processors = data.frame(seen[c("cpu", "core", "package", "node", "permitted")]),
    nodes = data.frame(node = seen$nodes, seen[c("cpus", "bytes", "free_bytes")]),
    distances = matrix(seen$distances, length(names), dimnames = list(from = names, to = names)),
    counter = seen$counter, hertz = seen$hertz
  )
}

pin <- function(cpus, process = TRUE) {
  call <- sys.call()
  if (missing(cpus)) fail('cpus is missing: type pin(0:3), or pin("0-3,8")', call = call)
  if (is.numeric(cpus) && length(cpus) > 0L && all(is.finite(cpus)) && all(cpus >= 0 & cpus == trunc(cpus))) {
    cpus <- paste(format(cpus, scientific = FALSE, trim = TRUE), collapse = ",")
  }
  if (!is.character(cpus)) fail('cpus must be numbers from 0 or a list such as "0-3,8"', call = call)
  cpus <- one_string(cpus, "cpus", call)
  process <- flag(process, "process", call)
  need_placement(call)
  why <- .Call(C_pin, cpus, process)
  if (!is.null(why)) fail(why, call = call)
  invisible(TRUE)
}

cycles <- function(expr, times = 1) {
  call <- sys.call()
  if (!is.numeric(times) || length(times) != 1L || !is.finite(times) || times < 1) {
    fail("times must be one number, at least 1, not ", deparse(times, nlines = 1L)[1L], call = call)
  }
  need_placement(call)
  counted <- .Call(C_cycles, substitute(expr), parent.frame(), times)
  structure(counted, counter = .Call(C_machine)$counter, class = "largesse_cycles")
}

print.largesse_cycles <- function(x, ...) {
  best <- which.min(x$ns)
  cat(sprintf("%s ns at best (%s ticks of %s), %s in the middle of %d\n",
    format(x$ns[best], big.mark = " ", digits = 6), format(x$ticks[best], big.mark = " "), attr(x, "counter"),
    format(median(x$ns), big.mark = " ", digits = 6), length(x$ns)))
  invisible(x)
}

# Fails if there is no library. Unlike `need_library`, it accepts a process that cannot have large pages.
need_placement <- function(call) {
  why <- no_library()
  if (!is.null(why)) fail("liblargesse.so is not here: ", why, call = call)
}
