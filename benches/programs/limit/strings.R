# Six million strings, none like another.
x <- sprintf("item %d of a long list", 1:6000000)
x[seq(1, 6000000, by = 10)] <- "changed"
cat(length(x), sum(nchar(x)), x[123456], length(unique(x)), "\n")
