"""Computes with NumPy on arrays of 384 MiB together, in the order of memory, across it, and at random places.

    python3 arrays.py --only arrays [--scale F] [--times N]

--scale F  the share of the data          --times N  repetitions; `seconds` is the time of all
"""
import argparse
import json
import sys
import time
import zlib

import numpy

parser = argparse.ArgumentParser()
parser.add_argument("--only", default="arrays")
parser.add_argument("--scale", type=float, default=1)
parser.add_argument("--times", type=int, default=2)
given = parser.parse_args()

rows, columns = max(16, round(8192 * given.scale)), 2048
numbers = numpy.arange(rows * columns, dtype=numpy.float64).reshape(rows, columns)
numbers %= 1000003
products = numpy.zeros_like(numbers)
work = numpy.zeros_like(numbers)
answer, spent = 0.0, 0.0
places = (numpy.arange(1 << 18, dtype=numpy.int64) * 2654435761) % (rows * columns)
for _ in range(given.times):
    begin = time.perf_counter()
    numpy.multiply(numbers, 0.5, out=products)  # in order
    numpy.add(products, numbers, out=work)
    work.sort(axis=1)  # row by row
    across = work.sum(axis=0)  # every row for each sum
    answer += float(across.sum()) + float(numpy.take(work, places).sum())
    work[:, ::64] += 1.0  # strided
    spent += time.perf_counter() - begin

bits = "%08x" % zlib.crc32(numpy.float64(answer).tobytes())
for row in range(0, rows, 16):
    bits = "%08x" % zlib.crc32(work[row].tobytes(), int(bits, 16))
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps({"test": "arrays", "seconds": spent, "answer": [answer], "bits": bits}))
about = f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}"
print(json.dumps({"peak_kb": int(peak), "hugetlb_kb": 0, "about": about}))
