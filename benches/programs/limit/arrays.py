"""Arrays of 192 MiB: random, sorted, products, sums."""
import numpy

a = numpy.random.default_rng(1).random(24 << 20)
b = numpy.sort(a)
c = numpy.cumsum(a * b)
c -= b[::-1]
print(repr(float(c[-1])), repr(float(c[12345])), int(numpy.argmax(a)))
