"""NumPy: arrays, linear algebra, transforms, views, files."""
import io, sys, tempfile, threading
import numpy as np

r = np.random.default_rng(1)
a, b = r.random((700, 700)), r.random((700, 700))
print(repr((a @ b).sum()), repr(np.linalg.det(a[:200, :200])))
print(repr(np.linalg.solve(a, b).sum()), np.linalg.svd(a[:300, :300])[1][:3].tolist())
print(np.linalg.eigvalsh(a + a.T)[:3].tolist(), repr(np.linalg.qr(a)[1].trace()))
x = r.standard_normal(1 << 20)
f = np.fft.fft(x)
print(repr(abs(f).sum()), np.allclose(np.fft.ifft(f).real, x))
print(repr(x.sum()), repr(x.mean()), repr(x.std()), repr(np.dot(x, x)), repr(np.cumsum(x)[-1]))
print(np.sort(x)[::100000].tolist(), np.argsort(x)[:5].tolist())
x[3:-5] *= 2
x[::3] += 1
print(repr(x[1:].sum()), repr((x[:-1] + x[1:]).sum()), repr(np.exp(-x * x).sum()), repr(np.sin(x).sum()))
for dtype in ["f4", "i8", "i2", "u1", "c16", "?"]:
    z = (np.arange(1 << 20) % 100).astype(dtype)
    print(dtype, z.sum(), z[::7].sum(), np.zeros(1 << 20, dtype).any())
w = np.zeros(3000000)
w[:] = 7
del w
print(np.zeros(3000000).any(), np.empty((0, 5)).shape)
big = np.arange(500000)
big.resize(2000000)
print(big.sum(), big[499999], big[500000:].any())
print(np.concatenate([big, big[::-1]]).reshape(1000, -1).T.copy()[5, :3].tolist())
s = np.array(["w%d" % n for n in range(100000)])
print(len(np.unique(s)), s[5])
with tempfile.TemporaryFile() as file:
    np.save(file, a)
    file.seek(0)
    print((np.load(file) == a).all())
results = [None] * 4


def work(n):
    results[n] = float(sum((np.full(400000, n + i) * 2.0).sum() for i in range(20)))


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(results)
try:
    np.zeros(1 << 50)
except MemoryError as error:
    print(type(error).__name__)
print("to stderr", file=sys.stderr)
