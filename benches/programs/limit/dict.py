"""A dict of 4 million numbers and strings: dict.py [COUNT]"""
import sys

count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
d = {k * 7919 % (count + 37): f"value {k}" for k in range(count)}
for k in range(0, count, 7):
    d[k] = "changed"
print(len(d), sum(map(len, d.values())), d[1_234_567], d[7_000])
