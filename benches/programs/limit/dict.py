"""A dict of 4 million numbers and strings."""
d = {k * 7919 % 4_000_037: f"value {k}" for k in range(4_000_000)}
for k in range(0, 4_000_000, 7):
    d[k] = "changed"
print(len(d), sum(map(len, d.values())), d[1_234_567], d[7_000])
