"""A data frame of 12 million rows, joined, sorted and grouped by Polars."""
import polars

n = 12_000_000
i = polars.int_range(n, eager=True)
d = polars.DataFrame({"i": i, "key": (i * 7919) % 100_003, "value": (i * 104_729) % 1_000_003})
other = polars.DataFrame({"key": polars.int_range(100_003, eager=True)}).with_columns(weight=polars.col("key") * 3)
joined = d.join(other, on="key").sort("value", "i")
grouped = joined.group_by("key").agg(polars.col("value").sum(), polars.col("weight").max()).sort("key")
print(len(joined), joined["i"][n // 2], grouped["value"].sum(), grouped["weight"].sum(), grouped["value"][777])
