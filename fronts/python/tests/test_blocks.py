"""Blocks and pages of arrays."""

import array
import unittest

import largesse
from support import HAS_NUMPY


class Where(unittest.TestCase):
    def setUp(self):
        largesse.disable()

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_views_are_described_by_their_memory(self):
        import numpy

        with largesse.pages():
            a = numpy.ones((1000, 2000))
        start = a.ctypes.data
        for view, address, size in [
            (a, start, 16_000_000),
            (a.T, start, 16_000_000),
            (a[::-1], start, 16_000_000),
            (a[10:20, 3], start + 160_024, 9 * 16_000 + 8),
            (a[:0], start, 0),
        ]:
            found = largesse.where(view)
            self.assertEqual((found.address, found.size), (address, size))
            self.assertNotEqual(found.kind, "other")

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_large_bytes_are_counted_by_the_kernel(self):
        import numpy

        with largesse.pages():
            untouched = numpy.empty(40_000_000)
            touched = numpy.ones(40_000_000)
        found = largesse.where(touched)
        if found.large_bytes is None:
            self.skipTest("no PAGEMAP_SCAN (kernel before 6.7)")
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            if "[never]" not in file.read():
                self.assertGreater(found.large_bytes, found.size // 2)
        self.assertLess(largesse.where(untouched).large_bytes, found.size // 2)

    def test_other_objects_with_a_buffer_are_described(self):
        data = bytearray(b"x" * 1_000_000)
        found = largesse.where(data)
        self.assertEqual((found.kind, found.size), ("other", 1_000_000))
        self.assertEqual(largesse.where(memoryview(data)[500_000:]).address, found.address + 500_000)

    def test_objects_without_memory_are_refused(self):
        for wrong in (1, [1.0], None, "text"):
            with self.assertRaisesRegex(largesse.Error, "to_numpy"):
                largesse.where(wrong)


class Blocks(unittest.TestCase):
    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_every_array_is_listed_once(self):
        import numpy

        with largesse.pages():
            arrays = [numpy.ones(100_000 + at) for at in range(40)]
        listed = [(block.address, block.size) for block in largesse.blocks()]
        self.assertEqual(listed, sorted(listed))
        for one in arrays:
            self.assertEqual(listed.count((one.ctypes.data, one.nbytes)), 1)
        self.assertEqual(largesse.status().blocks, len(listed))

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_notebook_tables_are_html(self):
        import numpy

        with largesse.pages():
            a = numpy.ones(1_000_000)
        for shown in (largesse.blocks(), largesse.where(a), largesse.status(), largesse.machine()):
            html = shown._repr_html_()
            self.assertTrue(html.startswith("<table>") and html.endswith("</table>"), html)
            self.assertEqual(html.count("<tr>"), html.count("</tr>"))
        self.assertIn(hex(a.ctypes.data), largesse.blocks()._repr_html_())
        self.assertIn(hex(a.ctypes.data), repr(largesse.blocks()))

    def test_array_module_works_without_numpy(self):
        self.assertEqual(largesse.where(array.array("d", [1, 2])).size, 16)


if __name__ == "__main__":
    unittest.main()
