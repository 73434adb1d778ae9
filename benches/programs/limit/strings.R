# Six million strings, none like another: strings.R [COUNT]
count <- as.integer(c(commandArgs(TRUE), 6000000)[1])
x <- sprintf("item %d of a long list", 1:count)
x[seq(1, count, by = 10)] <- "changed"
cat(length(x), sum(nchar(x)), x[123456], length(unique(x)), "\n")
