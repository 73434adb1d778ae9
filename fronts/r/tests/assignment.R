# `x := value` in the caller's frame, under ISM, with the state given back.
source("support/start.R")
ISM(FALSE)
n <- 1e6

x := ramp(n)
stopifnot(is_large(x), !ISM.status()$status, x[n] == n)

# In the frame of the function that calls, not the package's, the base's or the global one.
inside <- function() { only_here := { stopifnot(ISM.status()$status); numeric(n) }; is_large(only_here) }
stopifnot(inside(), !exists("only_here"))

# The value sees the caller's variables, and a later change of one does not reach it.
f <- function(a) { b := a * 2; a <- 0; b }
stopifnot(f(21) == 42)

# The state is given back after an error, and when it was on.
try(x := stop("as planned"), silent = TRUE)
stopifnot(!ISM.status()$status, x[n] == n)
ISM(TRUE)
y := 1
stopifnot(ISM.status()$status)
ISM(FALSE)

# Invisible, and its own value; a string, a missing value and code are values too.
shown <- withVisible(z := 5)
stopifnot(!shown$visible, shown$value == 5, z == 5)
"quoted name" := NULL
stopifnot(is.null(`quoted name`))
code := quote(a + b)
stopifnot(identical(code, quote(a + b)))

# Parts of an object.
x[2] := -1
stopifnot(x[2] == -1, x[3] == 3)
l <- list(a = 1)
l$b$c := quote(stop("never run"))
stopifnot(identical(l$b$c, quote(stop("never run"))))
names(l)[1] := "first"
stopifnot(identical(names(l), c("first", "b")))

# The value has no other owner: it is changed in place, where a copy made now would not be large.
fresh := ramp(n)
fresh[1] <- 0
taken <- ISM.status()$allocations
fresh[2] := 0
stopifnot(ISM.status()$allocations == taken, is_large(fresh))

# The plain name of the operator does the same.
largesse::ISM_assign(v, numeric(n))
stopifnot(is_large(v), !ISM.status()$status)

fails(1 := 2, "left side", "x := 1")
fails(NULL := 2, "left side")
fails(ISM_assign(x), "missing", "x := value")
fails(ISM_assign(, 1), "missing")
stopifnot(!ISM.status()$status)
