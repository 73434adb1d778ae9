"""A regression on 2.5 million rows of 16 columns."""
import numpy
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

rng = numpy.random.default_rng(1)
x = rng.random((2_500_000, 16))
y = x @ numpy.arange(16) + rng.random(len(x))
model = Ridge(solver="cholesky").fit(StandardScaler().fit_transform(x), y)
print([round(float(c), 9) for c in model.coef_])
