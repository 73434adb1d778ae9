# `x := value` computes the value on large pages and restores the former state.

ISM_assign <- function(x, value) {
  call <- sys.call()
  if (missing(x) || missing(value)) fail("a side of := is missing: type x := value", call = call)
  target <- substitute(x)
  frame <- parent.frame()
  simple <- is.symbol(target) || is.character(target) && length(target) == 1L
  if (!simple && !is.call(target)) {
    fail("the left side of := must be a name or a part of one, as in x := 1 or x[2] := 1, not ",
      deparse(target, nlines = 1L)[1L], call = call)
  }
  former <- begin(call)
  on.exit(ISM(former))
  force(value)
  if (simple) {
    assign(as.character(target), value, envir = frame)
  } else {
    # Quoted, so that a value which is itself code is stored and not run.
    eval(call("<-", target, call("quote", value)), frame)
  }
  invisible(value)
}

`:=` <- ISM_assign
