"""Reductions: the same bits for every layout, sensible axes, clear refusals."""

import array
import fractions
import math
import unittest

import largesse
from support import HAS_NUMPY


def parts(count):
    return [1 / number if number % 3 else -1 / number for number in range(1, count + 1)]


class Arrays(unittest.TestCase):
    def test_sums_are_near_the_exact_ones(self):
        for count in (0, 1, 2, 63, 64, 65, 1000, 40_001):
            x = array.array("d", parts(count))
            y = array.array("d", reversed(parts(count)))
            exact = [fractions.Fraction(value) for value in x]
            self.assertAlmostEqual(largesse.sum(x), math.fsum(x), delta=1e-12)
            self.assertAlmostEqual(largesse.asum(x), math.fsum(map(abs, x)), delta=1e-12)
            squares = float(sum(value * value for value in exact))
            self.assertAlmostEqual(largesse.sumsq(x), squares, delta=1e-12)
            self.assertAlmostEqual(largesse.nrm2(x), math.sqrt(squares), delta=1e-12)
            self.assertAlmostEqual(largesse.dot(x, y), math.fsum(a * b for a, b in zip(x, y)), delta=1e-12)

    def test_extremes_ignore_signs(self):
        for kind in "fd":
            x = array.array(kind, [2, -8, 0.5, -0.25] * 10_000 + [-0.125, -16])
            self.assertEqual((largesse.amax(x), largesse.amin(x)), (16, 0.125))
            nothing = array.array(kind)
            self.assertEqual((largesse.amax(nothing), largesse.amin(nothing)), (0, math.inf))
            x[70] = math.nan
            self.assertTrue(math.isnan(largesse.amax(x)) and math.isnan(largesse.amin(x)))

    def test_axpy_adds_in_place(self):
        y = array.array("f", [1, 2, 3])
        largesse.axpy(2, array.array("f", [1, 10, 100]), y)
        self.assertEqual(y.tolist(), [3, 22, 203])
        largesse.axpy(1, y, y)
        self.assertEqual(y.tolist(), [6, 44, 406])

    def test_number_of_threads_changes_no_bit(self):
        x = array.array("d", parts(300_000))
        results = set()
        for count in (1, 2, 3, 8):
            self.assertEqual(largesse.threads(count), count)
            results.add((largesse.sum(x), largesse.dot(x, x), largesse.nrm2(x)))
        largesse.threads(0)
        self.assertEqual(len(results), 1)

    def test_wrong_arguments_are_refused(self):
        x = array.array("d", [1, 2])
        for call, words in [
            (lambda: largesse.sum([1.0]), "numpy.asarray"),
            (lambda: largesse.sum(array.array("i", [1])), "astype"),
            (lambda: largesse.sum(b"bytes"), "type 'B'"),
            (lambda: largesse.dot(x, array.array("d", [1])), "x has 2 elements and y 1"),
            (lambda: largesse.dot(x, array.array("f", [1, 2])), "convert one"),
            (lambda: largesse.axpy(1, x, bytes(16)), "written"),
            (lambda: largesse.threads(-1), "whole number"),
            (lambda: largesse.threads(1.5), "whole number"),
        ]:
            with self.assertRaisesRegex(largesse.Error, words):
                call()


@unittest.skipUnless(HAS_NUMPY, "no NumPy")
class Layouts(unittest.TestCase):
    def setUp(self):
        import numpy

        self.numpy = numpy
        random = numpy.random.RandomState(7)
        self.values = random.standard_normal(6 * 5000) * 10.0 ** random.randint(-8, 8, 6 * 5000)

    def check(self, array, want, **options):
        for name, expected in want.items():
            found = getattr(largesse, name)(array, **options)
            same = self.numpy.array_equal(self.numpy.asarray(found), self.numpy.asarray(expected))
            self.assertTrue(same, f"{name} of {array.dtype} {array.strides}: {found!r}, not {expected!r}")

    def results(self, array, names=("sum", "sumsq", "nrm2", "asum", "amax", "amin")):
        return {name: getattr(largesse, name)(array) for name in names}

    def test_bits_do_not_depend_on_strides(self):
        numpy = self.numpy
        for kind in ("f4", "f8", "c8", "c16"):
            plain = self.values.astype(kind)
            if plain.dtype.kind == "c":
                plain = plain + 1j * plain[::-1]
            want = self.results(plain)
            spread = numpy.zeros((plain.size, 3), kind)
            spread[:, 1] = plain
            backwards = plain[::-1].copy()[::-1]
            packed = numpy.zeros(plain.size, numpy.dtype([("tag", "u1"), ("x", kind)]))
            packed["x"] = plain
            byte_off = numpy.frombuffer(b"." + plain.tobytes(), "u1")[1:].view(kind)
            square = plain.reshape(6, 5000)
            columns = numpy.asfortranarray(square)
            padded = numpy.zeros((6, 5007), kind)
            padded[:, :5000] = square
            for layout in (
                spread[:, 1],
                backwards,
                packed["x"],
                byte_off,
                square,
                columns,
                padded[:, :5000],
                square[:, None, :],
                plain[None],
            ):
                self.assertTrue(numpy.array_equal(layout.ravel(), plain))
                self.check(layout, want)
            if kind in ("f8", "c16"):
                for layout in (spread[:, 1], backwards, packed["x"]):
                    self.assertEqual(largesse.dot(layout, backwards), largesse.dot(plain, plain))
                    self.assertEqual(largesse.vdot(layout, backwards), largesse.vdot(plain, plain))

    def test_axes_reduce_each_row(self):
        numpy = self.numpy
        for kind in ("f4", "f8", "c8", "c16"):
            cube = self.values.astype(kind).reshape(6, 50, 100)
            for layout in (cube, numpy.asfortranarray(cube), cube[::-1, :, ::-1]):
                for axis in (0, 1, 2, -1):
                    rows = numpy.moveaxis(layout, axis, -1)
                    for name in ("sum", "sumsq", "nrm2", "asum", "amax", "amin"):
                        found = getattr(largesse, name)(layout, axis=axis)
                        self.assertEqual(found.shape, rows.shape[:-1])
                        self.assertEqual(found.dtype, layout.dtype if name == "sum" else layout.real.dtype)
                        at = tuple(length // 2 for length in found.shape)
                        want = getattr(largesse, name)(numpy.ascontiguousarray(rows[at]))
                        self.assertEqual(found[at], found.dtype.type(want))

    def test_extremes_are_those_of_numpy(self):
        numpy = self.numpy
        for kind in ("f4", "f8"):
            x = self.values.astype(kind).reshape(60, 500)
            self.assertEqual(largesse.amax(x), numpy.abs(x).max())
            self.assertEqual(largesse.amin(x), numpy.abs(x).min())
            self.assertTrue(numpy.array_equal(largesse.amax(x, axis=0), numpy.abs(x).max(axis=0)))
            self.assertTrue(numpy.array_equal(largesse.amin(x[:, ::3], axis=1), numpy.abs(x[:, ::3]).min(axis=1)))
        z = numpy.array([3 - 4j, 1 + 2j])
        self.assertEqual((largesse.amax(z), largesse.amin(z)), (4, 1))

    def test_empty_and_scalar_arrays(self):
        numpy = self.numpy
        self.assertEqual(largesse.sum(numpy.zeros((3, 0))), 0)
        self.assertEqual(largesse.sum(numpy.zeros((3, 0)), axis=1).tolist(), [0, 0, 0])
        self.assertEqual(largesse.sum(numpy.zeros((0, 3)), axis=1).tolist(), [])
        self.assertEqual(largesse.sum(numpy.float64(2).reshape(())), 2)
        self.assertEqual(largesse.sum(numpy.broadcast_to(numpy.float64(2), 1000)), 2000)

    def test_overlapping_axpy_uses_the_former_values(self):
        numpy = self.numpy
        for where in (slice(0, 900), slice(100, 1000), slice(None, None, -1)):
            y = numpy.arange(1000.0)
            x = y[where][:900] if where.step is None else y[where]
            target = y[50:950] if where.step is None else y
            want = target + 2 * x
            largesse.axpy(2, x, target)
            self.assertTrue(numpy.array_equal(target, want))

    def test_wrong_arrays_are_refused(self):
        numpy = self.numpy
        ones = numpy.ones((2, 3))
        for call, words in [
            (lambda: largesse.sum(numpy.arange(3)), r"astype\(float\)"),
            (lambda: largesse.sum(numpy.ones(3, ">f8")), "byte order"),
            (lambda: largesse.sum(numpy.ones(3, "f2")), "float32, float64"),
            (lambda: largesse.sum(numpy.ma.masked_array([1.0, 2.0], [0, 1])), r"filled\(0\)"),
            (lambda: largesse.sum(ones, axis=2), "axis 2 does not exist"),
            (lambda: largesse.sum(ones, axis=(0, 1)), "one number"),
            (lambda: largesse.dot(ones, ones), r"ravel\(\)"),
            (lambda: largesse.axpy(1, numpy.ones(3), numpy.ones((2, 3))[:, ::2]), "must be a vector"),
            (lambda: largesse.sum(numpy.array(["a"])), "astype"),
        ]:
            with self.assertRaisesRegex(largesse.Error, words):
                call()


if __name__ == "__main__":
    unittest.main()
