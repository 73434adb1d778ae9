"""A Fourier transform in two dimensions, and back."""
import numpy
import scipy.fft

x = numpy.random.default_rng(1).random((4500, 4500))
y = scipy.fft.fft2(x, workers=1)
z = scipy.fft.ifft2(y, workers=1).real
print(repr(float(y[3, 7].real)), repr(float(numpy.abs(z - x).max() < 1e-12)), repr(float(z.sum())))
