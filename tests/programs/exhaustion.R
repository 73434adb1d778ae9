refused <- 0
for (round in 1:3) {
  kept <- list()
  answer <- tryCatch({ repeat kept[[length(kept) + 1]] <- numeric(4e6); "never" }, error = conditionMessage)
  stopifnot(grepl("cannot allocate vector of size", answer), length(kept) > 3)
  refused <- refused + 1
  rm(kept); invisible(gc())
}
stopifnot(sum(numeric(4e6) + 1) == 4e6)
cat(refused, "refusals, and R goes on\n")
