# minKB and maxKB: which vectors are large, and the messages about bad values, after which nothing changes.
source("support/start.R")
ISM(TRUE, minKB = 256, maxKB = 2^40)
before <- ISM.status()[c("status", "minKB", "maxKB")]
stopifnot(before$minKB == 256, before$maxKB == 2^40)

fails(ISM(minKB = 2048, maxKB = 1024), "minKB (2048) is above maxKB (1024)", "ISM(minKB")
fails(ISM(maxKB = 128), "above maxKB (128)")
for (bad in list(-1, 0, 63, NA, NA_real_, NaN, Inf, -Inf, 2^40 + 1, 1e300, "512", c(1, 2), numeric(), NULL, TRUE, list(512))) {
  fails(ISM(minKB = bad), "minKB", "64")
  fails(ISM(FALSE, maxKB = bad), "maxKB", "64", "no limit")
}
for (bad in list(NA, 1, "yes", c(TRUE, FALSE), NULL, logical())) fails(ISM(bad), "on must be TRUE or FALSE")
fails(ISM.trim(-1), "keepKB")
stopifnot(identical(ISM.status()[names(before)], before))

# The call in the condition is the one that was typed.
stopifnot(identical(conditionCall(fails(ISM(minKB = -1))), quote(ISM(minKB = -1))))

# Only vectors between the limits are large; a call with the values of ISM.status() changes nothing.
ISM(TRUE, minKB = 4096, maxKB = 16384)
stopifnot(!is_large(numeric(2^18)), is_large(numeric(2^20)), !is_large(numeric(2^22)))
ISM(on = TRUE, minKB = ISM.status()$minKB, maxKB = ISM.status()$maxKB)
stopifnot(ISM.status()$minKB == 4096, ISM.status()$maxKB == 16384)
ISM(minKB = 256, maxKB = 2^40)
stopifnot(is_large(numeric(2^18)), is_large(numeric(2^22)))
