"""A data frame of 6 million rows, joined and grouped."""
import numpy
import pandas

n, rng = 6_000_000, numpy.random.default_rng(1)
d = pandas.DataFrame({"key": rng.integers(0, 50_000, n), "a": rng.random(n), "b": rng.integers(0, 1000, n)})
names = pandas.DataFrame({"key": numpy.arange(50_000), "weight": rng.random(50_000)})
joined = d.merge(names, on="key").sort_values(["key", "a"])
grouped = joined.groupby("key").agg({"a": "sum", "b": "max", "weight": "mean"})
print(len(joined), repr(float(grouped["a"].sum())), int(grouped["b"].sum()), repr(float(grouped["weight"].iloc[777])))
