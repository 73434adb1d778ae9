# A vignette engine that needs neither LaTeX nor another package. The source is R code. Lines that
# begin with #' are prose: "# " starts a heading, an empty line a paragraph, `x` is code. Lines that
# begin with % are for R's own vignette tools. The result is one HTML page with the code and what it
# printed; there are no pictures.

register_vignette_engine <- function(package) {
  vignetteEngine("script", weave = weave, tangle = tangle, pattern = "[.]Rscript$", package = package)
}

weave <- function(file, driver, syntax, encoding = "UTF-8", ...) {
  lines <- readLines(file, encoding = "UTF-8", warn = FALSE)
  title <- sub(".*VignetteIndexEntry[{](.*)[}].*", "\\1", grep("VignetteIndexEntry", lines, value = TRUE)[1L])
  lines <- grep("^%", lines, value = TRUE, invert = TRUE)
  prose <- grepl("^#'", lines)
  runs <- rle(prose)
  pieces <- split(lines, rep(seq_along(runs$lengths), runs$lengths))
  session <- new.env(parent = globalenv())
  body <- Map(function(piece, is_prose) if (is_prose) paragraphs(piece) else run(piece, session),
    pieces, runs$values)
  output <- sub("[.]Rscript$", ".html", basename(file))
  writeLines(enc2utf8(c(
    "<!DOCTYPE html>", "<html lang=\"en\"><head><meta charset=\"utf-8\">",
    paste0("<title>", escape(title), "</title>"),
    "<style>body{max-width:50em;margin:2em auto;font-family:sans-serif;line-height:1.5}",
    "pre{background:#f4f4f4;padding:.6em;overflow-x:auto}</style></head><body>",
    paste0("<h1>", escape(title), "</h1>"), unlist(body), "</body></html>"
  )), output, useBytes = TRUE)
  output
}

# Writes nothing: the source, which is R code except for its first lines, is installed with the page.
tangle <- function(file, ...) NULL

escape <- function(text) gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", text, fixed = TRUE)))

paragraphs <- function(lines) {
  text <- sub("^#' ?", "", lines)
  vapply(split(text, cumsum(!nzchar(text))), function(block) {
    block <- block[nzchar(block)]
    if (!length(block)) return("")
    heading <- grepl("^# ", block[1L])
    words <- gsub("`([^`]+)`", "<code>\\1</code>", escape(paste(sub("^# ", "", block), collapse = "\n")))
    if (heading) paste0("<h2>", words, "</h2>") else paste0("<p>", words, "</p>")
  }, "")
}

# Runs the code one expression at a time, as if typed. An error of this package is shown and ends the
# block, so that the page can be built without large pages. Any other error stops the build. For
# packages that are to have the same bytes in each build (SOURCE_DATE_EPOCH), code is shown and not run,
# since times and addresses differ.
run <- function(lines, session) {
  if (!any(nzchar(trimws(lines)))) return("")
  if (nzchar(Sys.getenv("SOURCE_DATE_EPOCH"))) return(c("<pre>", escape(lines), "</pre>"))
  code <- parse(text = lines, keep.source = TRUE)
  shown <- character()
  for (i in seq_along(code)) {
    source <- as.character(attr(code, "srcref")[[i]])
    went_well <- TRUE
    printed <- capture.output(tryCatch({
      result <- withVisible(eval(code[[i]], session))
      if (result$visible) print(result$value)
    }, largesse_error = function(e) {
      went_well <<- FALSE
      cat("Error:", conditionMessage(e), "\n")
    }))
    shown <- c(shown, paste(c(">", rep("+", length(source) - 1L)), source), printed)
    if (!went_well) break
  }
  c("<pre>", escape(shown), "</pre>")
}
