"""Arrays get large pages, with the same contents."""

import hashlib
import threading
import unittest

import largesse
from support import HAS_NUMPY, MIB, PRELOADED, environment, fresh, python


@unittest.skipUnless(HAS_NUMPY, "no NumPy")
class Pages(unittest.TestCase):
    def setUp(self):
        import numpy

        self.numpy = numpy
        largesse.disable()

    def kind(self, count=MIB):
        return largesse.where(self.numpy.ones(count)).kind

    def test_enable_serves_and_disable_stops(self):
        self.assertEqual(self.kind(), "other")
        largesse.enable()
        self.assertNotEqual(self.kind(), "other")
        self.assertEqual(largesse.status().hooked, "preloaded" if PRELOADED else "functions")
        largesse.disable()
        self.assertEqual(self.kind(), "other")

    def test_pages_restores_the_former_state(self):
        with largesse.pages():
            self.assertNotEqual(self.kind(), "other")
            with largesse.pages():
                pass
            self.assertNotEqual(self.kind(), "other", "the inner block switched the outer one off")
        self.assertEqual(self.kind(), "other")
        largesse.enable()
        with self.assertRaises(ZeroDivisionError), largesse.pages():
            1 / 0
        self.assertTrue(largesse.status().enabled)

    def test_blocks_of_two_threads_overlap(self):
        inside, leave = threading.Event(), threading.Event()

        def other():
            with largesse.pages():
                inside.set()
                leave.wait(60)

        thread = threading.Thread(target=other)
        thread.start()
        self.assertTrue(inside.wait(60))
        with largesse.pages():
            pass
        self.assertNotEqual(self.kind(), "other", "the other thread is still inside")
        leave.set()
        thread.join()
        self.assertEqual(self.kind(), "other")

    def test_arrays_of_every_thread_are_served(self):
        largesse.enable()
        kinds = []
        threads = [threading.Thread(target=lambda: kinds.append(self.kind())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(kinds), 4)
        self.assertNotIn("other", kinds)

    def test_min_kb_bounds_sizes(self):
        before = largesse.status().min_kb
        largesse.enable(min_kb=1024)
        self.assertEqual(self.kind(64 * 1024), "other")
        self.assertNotEqual(self.kind(256 * 1024), "other")
        largesse.enable(min_kb=before)

    def test_wrong_limits_change_nothing(self):
        before = largesse.status()
        for limits, words in [
            ({"min_kb": 63}, "min_kb must be a number of KiB from 64 on, not 63"),
            ({"min_kb": "256"}, "not '256'"),
            ({"min_kb": True}, "not True"),
            ({"min_kb": float("nan")}, "not nan"),
            ({"max_kb": 0}, "max_kb must be"),
            ({"min_kb": 512, "max_kb": 256}, "give both"),
        ]:
            with self.assertRaisesRegex(largesse.Error, words):
                largesse.enable(**limits)
        now = largesse.status()
        self.assertEqual((now.min_kb, now.max_kb, now.enabled), (before.min_kb, before.max_kb, False))

    def test_contents_survive_growth_shrinking_and_switching(self):
        grown = self.numpy.arange(1000.0)
        want = self.numpy.arange(1000.0)
        for step, count in enumerate([500_000, 3_000_000, 10, 2_000_000, 50_000_000, 7]):
            (largesse.enable if step % 2 == 0 else largesse.disable)()
            kept = min(count, want.size)
            grown.resize(count, refcheck=False)
            want = self.numpy.concatenate([want[:kept], self.numpy.zeros(count - kept)])
            self.assertTrue(self.numpy.array_equal(grown, want), f"after resizing to {count}")

    def test_zeros_are_zero_in_reused_memory(self):
        largesse.enable()
        for count in (300_000, 1_000_000, 300_000):
            used = self.numpy.full(count, 7.0)
            del used
            self.assertFalse(self.numpy.zeros(count).any())

    def test_arrays_that_grow_reach_large_pages(self):
        largesse.enable()
        grown = self.numpy.fromiter((number for number in range(300_000)), float)  # without a length in advance
        self.assertNotEqual(largesse.where(grown).kind, "other")
        self.assertEqual(grown[-1], 299_999)
        resized = self.numpy.ones(1000)
        resized.resize(1_000_000, refcheck=False)
        self.assertNotEqual(largesse.where(resized).kind, "other")
        self.assertEqual(resized.sum(), 1000)

    def test_arrays_made_before_and_after_are_freed_alike(self):
        before = [self.numpy.ones(count) for count in (3, 100, 10_000, 1_000_000)]
        largesse.enable()
        during = [self.numpy.ones(count) for count in (3, 100, 10_000, 1_000_000)]
        blocks = largesse.status().blocks
        largesse.disable()
        del before, during
        self.assertEqual(largesse.status().blocks, blocks - 1)

    def test_many_threads_allocate_and_free(self):
        largesse.enable()
        wrong = []

        def work(seed):
            numpy = self.numpy
            random = numpy.random.RandomState(seed)
            held = []
            for _ in range(60):
                count = int(random.randint(1, 400_000))
                held.append((numpy.full(count, count), count))
                array, number = held.pop(random.randint(len(held))) if len(held) > 5 else held[-1]
                if array[0] != number or array[-1] != number:
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_results_have_the_same_bits(self):
        def digest():
            random = self.numpy.random.RandomState(1)
            a = random.rand(300, 300)
            parts = [a @ a, self.numpy.linalg.svd(a)[1], self.numpy.fft.fft2(a), self.numpy.sort(random.rand(500_000))]
            return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()

        without = digest()
        with largesse.pages():
            self.assertEqual(digest(), without)

    def test_trim_returns_kept_memory(self):
        largesse.enable()
        used = self.numpy.ones(8 * MIB)
        del used
        self.assertGreater(largesse.trim(), 0)
        self.assertEqual(largesse.trim(), 0)
        with self.assertRaisesRegex(largesse.Error, "keep_kb must be"):
            largesse.trim(-1)


class Handlers(unittest.TestCase):
    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_handler_of_another_package_is_named(self):
        said = fresh("""
            import ctypes, numpy, largesse
            from largesse import _numpy
            capsule = _numpy._Capsule(_numpy._core())
            capsule.handler().name = b"other_package"
            try:
                largesse.enable()
            except largesse.Error as error:
                print(error)
        """)
        self.assertIn("'other_package'", said)
        self.assertIn("largesse run -- python", said)

    @unittest.skipUnless(HAS_NUMPY, "no NumPy")
    def test_arrays_outlive_the_interpreter(self):
        # Arrays in globals of builtins are freed last, after this module.
        self.assertEqual(
            fresh("""
            import builtins, numpy, largesse
            largesse.enable()
            builtins.kept = [numpy.ones(1_000_000) for _ in range(5)]
            class Late:
                def __init__(self): self.array = numpy.ones(1_000_000)
                def __del__(self): del self.array
            builtins.late = Late()
            print("ended")
        """),
            "ended",
        )

    def test_pages_leaves_a_preloaded_session_on(self):
        said = python(
            """
            import largesse
            with largesse.pages():
                pass
            print(largesse.status().enabled, largesse.status().hooked)
        """,
            env=environment(preload=largesse.status().library),
        )
        self.assertEqual(said, "True preloaded")

    def test_without_numpy_the_reason_is_given(self):
        said = fresh("""
            import sys
            sys.modules["numpy"] = None      # as if it were not installed
            import largesse
            print(largesse.status().support, largesse.blocks(), largesse.sum(__import__("array").array("d", [1, 2])))
            try:
                largesse.enable()
            except largesse.Error as error:
                print(error)
        """)
        self.assertIn("True no large block 3.0", said)
        self.assertIn("there is no NumPy", said)


if __name__ == "__main__":
    unittest.main()
