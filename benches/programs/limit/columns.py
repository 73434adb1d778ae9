"""Columns of 12 million values, sorted and filtered by pyarrow."""
import numpy
import pyarrow
import pyarrow.compute

n, rng = 12_000_000, numpy.random.default_rng(1)
table = pyarrow.table({name: pyarrow.array(rng.integers(0, 1 << 40, n)) for name in "abc"})
table = pyarrow.Table.from_arrays([pyarrow.compute.add(column, 1) for column in table.columns], names=list("abc"))
order = pyarrow.compute.sort_indices(table, sort_keys=[("a", "ascending"), ("b", "descending")])
ordered = table.take(order)
few = ordered.filter(pyarrow.compute.greater(ordered["c"], 1 << 39))
print(len(few), pyarrow.compute.sum(few["b"]).as_py(), ordered["c"][n // 2].as_py())
