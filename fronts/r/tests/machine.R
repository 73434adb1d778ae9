# Processors, nodes and time in a session.
source("support/start.R")

here <- machine()
stopifnot(is.data.frame(here$processors), nrow(here$processors) >= 1, any(here$processors$permitted))
stopifnot(sum(here$nodes$cpus) == nrow(here$processors), all(here$nodes$bytes >= here$nodes$free_bytes, na.rm = TRUE))
stopifnot(all(diag(here$distances) == 10), here$hertz > 1e6, nzchar(here$counter))

# After pinning to one processor, every thread of this R is there, and its children are, too.
allowed <- function() sub(".*:\\s*", "", grep("^Cpus_allowed_list", readLines("/proc/self/status"), value = TRUE))
permitted <- here$processors$cpu[here$processors$permitted]
first <- permitted[1]
stopifnot(isTRUE(pin(first)), allowed() == first)
child <- system2("grep", c("Cpus_allowed_list", "/proc/self/status"), stdout = TRUE)
stopifnot(sub(".*:\\s*", "", child) == first)
stopifnot(identical(machine()$processors$permitted, here$processors$permitted))
pin(permitted)

# An error names a processor that does not exist, and nothing changes.
before <- allowed()
fails(pin(c(first, 8000)), "processor 8000 does not exist", " online")
fails(pin("0-x"), "'0-x' is not a list of processors")
fails(pin(), "cpus is missing", "pin(0:3)")
fails(pin(-1), "numbers from 0")
fails(pin(0.5), "numbers from 0")
fails(pin(first, NA), "process must be TRUE or FALSE")
stopifnot(identical(allowed(), before))

# cycles() returns the value and the time of each evaluation, in the frame of its caller.
y <- 1
counted <- cycles(y <- y + 1, times = 5)
stopifnot(y == 6, counted$value == 6, length(counted$ticks) == 5, all(counted$ticks > 0))
slept <- cycles(Sys.sleep(0.02))
stopifnot(slept$ns > 19e6, abs(slept$ticks / here$hertz * 1e9 / slept$ns - 1) < 1e-3)
stopifnot(grepl("ns at best", capture.output(print(slept))))
fails(cycles(1, times = 0), "times must be one number")
stopifnot(inherits(try(cycles(stop("as planned")), silent = TRUE), "try-error"))
