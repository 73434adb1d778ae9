#!/usr/bin/env python3
"""The analysis of the guides: prints the median of a column, and that of its running mean."""
import sys
import numpy

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
column = numpy.arange(rows, dtype=float) * 7919 % rows
print("median", numpy.median(column), numpy.median(numpy.cumsum(column) / numpy.arange(1, rows + 1)))
