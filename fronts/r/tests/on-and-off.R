# ISM switches large pages on and off and returns the former state; a block lives as long as its vector.
source("support/start.R")

stopifnot(identical(ISM.status()$status, preloaded))
former <- withVisible(ISM(TRUE))
stopifnot(identical(former$value, preloaded), !former$visible)
stopifnot(ISM.status()$status, ISM.status()$hooked == if (preloaded) "preloaded" else "patched")
stopifnot(identical(ISM(FALSE), TRUE), identical(ISM(FALSE), FALSE), !ISM.status()$status)

ISM(TRUE)
n <- 1e6
x <- ramp(n)
row <- block_of(x)
stopifnot(nrow(row) == 1, row$size >= 8 * n, row$size <= 8 * n + 4096, row$kind %in% c("thp", "hugetlb", "small"))
stopifnot(row$large_bytes >= 0, row$large_bytes <= row$size)
stopifnot(ISM.status()$blocks >= 1, ISM.status()$bytes >= 8 * n)

# A small vector is none of ours.
stopifnot(!is_large(as.double(1:100)))

# Off: new vectors are not ours, old ones stay valid, grow and die.
ISM(FALSE)
y <- x + 1
stopifnot(!is_large(y), is_large(x), sum(y - x) == n)
x[1] <- 7
stopifnot(x[1] == 7, sum(x) == n * (n + 1) / 2 + 6)
rm(x)
invisible(gc())
stopifnot(!row$address %in% ISM.list()$address)
if (!preloaded) stopifnot(is.null(ISM.list()), ISM.status()$blocks == 0)

# Asking for more than there is gives R's own error, and R goes on.
ISM(TRUE)
refused <- tryCatch(numeric(2^44), error = conditionMessage)
stopifnot(is.character(refused), grepl("cannot allocate", refused))
z <- numeric(n)
stopifnot(is_large(z), all(z == 0))

# with_ISM gives the value, and the state back, also after an error.
ISM(FALSE)
w <- with_ISM({ stopifnot(ISM.status()$status); ramp(n) })
stopifnot(is_large(w), !ISM.status()$status)
try(with_ISM(stop("as planned")), silent = TRUE)
stopifnot(!ISM.status()$status)

# Free memory can be given back.
rm(w, z)
invisible(gc())
given <- withVisible(ISM.trim())
stopifnot(!given$visible, given$value >= 0, ISM.status()$retained <= 2^22 * (ISM.status()$blocks + 1))
