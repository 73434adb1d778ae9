# Works on data frames: builds, orders by several keys, joins, sums by group, filters. Nearly all the time is spent on
# making new columns and gathering from old ones.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "lib.R"))

columns <- function(frame, ...) c(nrow(frame), vapply(frame, function(x) sum(as.numeric(x)), 0))

sales <- function(n) {
  shop <- sample.int(2000L, n, replace = TRUE)
  data.frame(shop = shop, day = sample.int(365L, n, replace = TRUE),
             amount = round(rexp(n, 0.02), 2), share = runif(n))
}

measure("build", function() NULL, function(input) {
  frame <- sales(many(1e6))
  frame$month <- frame$day %/% 31L + 1L
  frame$net <- frame$amount * (1 - frame$share / 10)
  frame$large <- frame$net > mean(frame$net)
  transform(frame, gap = net - amount, double = net * 2)
}, columns)

measure("order", function() sales(many(2e6)),
        function(frame) frame[order(frame$shop, frame$day, -frame$amount), ],
        function(frame, ...) c(columns(frame), frame$amount[1], frame$share[nrow(frame)]))

measure("join", function() {
  n <- many(4e6)
  clients <- data.frame(client = sample.int(n %/% 4), area = runif(n %/% 4), rent = rexp(n %/% 4),
                        region = sample.int(12L, n %/% 4, replace = TRUE))
  list(orders = cbind(sales(n), client = sample.int(n %/% 4, n, replace = TRUE)), clients = clients)
}, function(input) {
  at <- match(input$orders$client, input$clients$client)
  joined <- cbind(input$orders, lapply(input$clients[c("area", "rent", "region")], function(x) x[at]))
  joined$yield <- joined$amount / (1 + joined$rent + joined$area)
  joined
}, columns)

measure("groups", function() sales(many(2e6)), function(frame) {
  by_shop <- rowsum(as.matrix(frame[c("amount", "share")]), frame$shop)
  by_day <- vapply(split(frame$amount, frame$day), median, 0)
  month <- (frame$day - 1L) %/% 31L
  by_month <- tapply(frame$amount, list(frame$shop %% 50L, month), mean)
  list(by_shop, by_day, by_month)
}, function(result, ...) vapply(result, sum, 0, na.rm = TRUE))

measure("filter", function() sales(many(2e6)), function(frame) {
  kept <- frame[frame$amount > 10 & frame$share < 0.9 | frame$shop == 1L, ]
  kept$rank <- cumsum(kept$amount) / sum(kept$amount)
  rbind(kept[kept$rank > 0.5, ], kept[kept$rank <= 0.5, ])
}, columns)

finish()
