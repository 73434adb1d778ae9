"""Other libraries work in the same process, with the same results as before."""

import importlib.util
import unittest

import largesse
from support import HAS_NUMPY, fresh

WORK = {
    "pandas": """
import pandas
def results():
    random = numpy.random.RandomState(1)
    frame = pandas.DataFrame({"key": random.randint(0, 100, 200_000), "x": random.rand(200_000)})
    frame["y"] = frame.x.rolling(50).mean().fillna(0)
    groups = frame.groupby("key").agg(["mean", "sum", "std"])
    merged = frame.merge(groups.x, left_on="key", right_index=True).sort_values(["x"])
    return [groups.values, merged.select_dtypes("number").values, pandas.concat([frame] * 3).values]
""",
    "scipy": """
import scipy.fft, scipy.linalg, scipy.sparse, scipy.sparse.linalg
def results():
    random = numpy.random.RandomState(1)
    a = random.rand(300, 300)
    grid = scipy.sparse.diags([-1, 4, -1], [-1, 0, 1], (50_000, 50_000)).tocsc()
    return [scipy.linalg.lu(a)[2], scipy.fft.fft2(a), scipy.sparse.linalg.spsolve(grid, random.rand(50_000))]
""",
    "sklearn": """
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
def results():
    random = numpy.random.RandomState(1)
    x = random.rand(5_000, 40)
    y = x @ random.rand(40)
    trees = RandomForestClassifier(10, random_state=1, n_jobs=2).fit(x, y > y.mean())
    return [Ridge().fit(x, y).coef_, PCA(5, svd_solver="full").fit_transform(x), trees.predict_proba(x)]
""",
    # Its memory is its own; arrays that it gives to NumPy are shared or copied. Its threads add in any order, so that
    # its own sums differ from run to run.
    "polars": """
import polars
def results():
    frame = polars.DataFrame({"key": numpy.arange(300_000) % 97, "x": numpy.sin(numpy.arange(300_000.0))})
    groups = frame.group_by("key").agg(polars.col("x").max()).sort("key")
    return [groups.to_numpy(), frame.sort("x").to_numpy(), frame.filter(polars.col("x") > 0)["x"].to_numpy()]
""",
    "torch": """
import torch
torch.manual_seed(1)
torch.set_num_threads(2)
def results():
    random = numpy.random.RandomState(1)
    x = torch.from_numpy(random.rand(2_000, 100))
    weight = torch.zeros(100, dtype=torch.float64, requires_grad=True)
    for _ in range(5):
        loss = ((x @ weight - x.sum(1)) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad
            weight.grad.zero_()
    shared = numpy.ones(1_000_000)
    torch.from_numpy(shared).mul_(3)
    return [weight.detach().numpy(), shared, torch.from_numpy(shared).cumsum(0).numpy()]
""",
}
"""Code for each library that defines `results`, whose arrays have the same bits each time."""


def installed(name):
    return HAS_NUMPY and importlib.util.find_spec(name) is not None


class Libraries(unittest.TestCase):
    """Each test computes the same without and with large pages, in one process, and prints both in one form."""

    def check(self, *names):
        """Checks that these libraries, all in one process, have the same results with large pages."""
        for name in names:
            if not installed(name):
                self.skipTest(f"no {name} (pip install {name})")
        loads = "".join(f"{WORK[name]}\nevery.append(results)\n" for name in names)
        said = fresh(f"""
import hashlib, numpy
every = []
{loads}
def digest():
    parts = [numpy.asarray(part).tobytes() for results in every for part in results()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
before = digest()
import largesse
largesse.enable(min_kb=64)
allocations = largesse.status().allocations
print(before == digest(), largesse.status().allocations > allocations)
""")
        self.assertEqual(said.split(), ["True", "True"])

    def test_pandas(self):
        self.check("pandas")

    def test_scipy(self):
        self.check("scipy")

    def test_scikit_learn(self):
        self.check("sklearn")

    def test_polars(self):
        self.check("polars")

    def test_torch(self):
        self.check("torch")

    def test_all_in_one_process(self):
        names = [name for name in WORK if installed(name)]
        if len(names) < 2:
            self.skipTest(f"of {', '.join(WORK)} there are {len(names)}")
        self.check(*names)

    def test_where_names_the_way_for_tables_and_tensors(self):
        for name, make in [("pandas", "DataFrame({'x': [1.0]})"), ("torch", "ones(3)")]:
            if not installed(name):
                continue
            module = __import__(name)
            with self.assertRaisesRegex(largesse.Error, "to_numpy|numpy"):
                largesse.where(eval(f"module.{make}", {"module": module}))
            if name == "pandas":
                self.assertEqual(largesse.sum(module.Series([1.0, 2.0])), 3.0)


if __name__ == "__main__":
    unittest.main()
