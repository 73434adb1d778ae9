"""Writes 12 million lines in no order to a file. lines.py FILE"""
import sys

with open(sys.argv[1], "w") as file:
    for first in range(0, 12_000_000, 10_000):
        lines = (f"{(i * 0x9E3779B97F4A7C15) & (1 << 64) - 1:016x}\n" for i in range(first, first + 10_000))
        file.writelines(lines)
