"""Far memory: bounded memory, the same contents, and refusals that change nothing."""

import unittest

import largesse
from support import HAS_NUMPY, PRELOADED, environment, fresh, python


@unittest.skipUnless(HAS_NUMPY, "no NumPy")
class FarMemory(unittest.TestCase):
    def test_arrays_beyond_local_keep_their_contents(self):
        for prepare in ("import numpy", "import numpy; before = numpy.ones(1000)", ""):
            for store in ("None", "'memory:'", "'file:far'"):
                if store == "'memory:'":
                    continue  # the store of `largesse run` only
                said = fresh(f"""
                    {prepare}
                    import os, tempfile
                    os.chdir(tempfile.mkdtemp())
                    import largesse
                    largesse.far_memory("64M", store={store})
                    import numpy
                    arrays = [numpy.full(4_000_000, float(at)) for at in range(8)]
                    for step in largesse.tuned("pass", range(3)):
                        for array in arrays:
                            array += step
                    assert all((array == at + 3).all() for at, array in enumerate(arrays)), "contents"
                    far = largesse.status().far
                    print(far["resident_bytes"] <= 64 << 20, far["stored_bytes"] > 100 << 20, far["evictions"] > 0)
                    print(all(largesse.where(array).kind != "other" for array in arrays))
                """)
                self.assertEqual(said, "True True True\nTrue", f"store {store} after {prepare!r}")

    def test_limit_is_set_while_arrays_exist(self):
        said = fresh("""
            import numpy, largesse
            largesse.enable()
            arrays = [numpy.full(1 << 20, float(at)) for at in range(6)]
            try:
                largesse.memory_limit("160M")
            except largesse.Error as error:
                print("skipped", error)
            else:
                arrays += [numpy.full(1 << 20, float(at)) for at in range(6, 24)]
                assert all((array == at).all() for at, array in enumerate(arrays)), "contents"
                print(largesse.status().far["evictions"] > 0)
        """)
        self.assertRegex(said, "^(True|skipped .*userfaultfd.*|skipped .*6.8.*)$")

    def test_forked_children_see_their_parents_arrays(self):
        self.assertEqual(
            fresh("""
            import multiprocessing, numpy, largesse
            largesse.far_memory("32M")
            arrays = [numpy.full(2_000_000, float(at)) for at in range(6)]
            def total(at):
                arrays[at] += 1
                return float(arrays[at].sum())
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(total, range(6)) == [2e6 * (at + 1) for at in range(6)])
            print(all((array == at).all() for at, array in enumerate(arrays)))
        """),
            "True\nTrue",
        )

    def test_second_call_is_refused(self):
        said = fresh("""
            import numpy, largesse
            largesse.far_memory("64M")
            a = numpy.ones(20_000_000)
            try:
                largesse.far_memory("1G")
            except largesse.Error as error:
                print(error)
            print(a.sum(), largesse.status().far["local_bytes"] >> 20)
        """)
        self.assertIn("has far memory already", said)
        self.assertIn("20000000.0 64", said)

    def test_call_after_the_first_block_is_refused(self):
        said = fresh("""
            import numpy, largesse
            largesse.enable()
            a = numpy.ones(1_000_000)
            try:
                largesse.far_memory("64M")
            except largesse.Error as error:
                print(error, largesse.status().far, a.sum())
        """)
        self.assertIn("large blocks already", said)
        self.assertIn("None 1000000.0", said)

    def test_nonsense_is_refused_before_anything_changes(self):
        for call, words in [
            ("''", "local must be a text"),
            ("None", "local must be a text"),
            ("1.5", "local must be a text"),
            ("'many'", 'local "many" is not a size'),
            ("'101%'", "1% to 100%"),
            ("1000", "the least is 1M"),
            ("'1G', store='disk'", 'store "disk"'),
            ("'1G', store='file:/nowhere/at/all'", "/nowhere/at"),
            ("'1G', store=''", "store must be a text"),
            ("'1G', page_size='5K'", "power of two"),
            ("'1G\\0'", "local must be a text"),
        ]:
            said = fresh(f"""
                import numpy, largesse
                try:
                    largesse.far_memory({call})
                except largesse.Error as error:
                    print(error)
                assert largesse.status().far is None
                largesse.far_memory("64M")
                print((numpy.ones(20_000_000) == 1).all(), largesse.status().far["local_bytes"] >> 20)
            """)
            self.assertIn(words, said)
            self.assertTrue(said.endswith("True 64"), said)

    def test_store_without_its_command_is_refused(self):
        said = fresh("""
            import os, numpy, largesse
            os.environ["PATH"] = ""
            try:
                largesse.far_memory("1G", "redis://nowhere")
            except largesse.Error as error:
                print(error)
        """)
        self.assertRegex(said, "needs the command largesse|agent was not started")

    def test_a_preloaded_session_says_what_it_has(self):
        if not PRELOADED:
            self.skipTest("not started by largesse run")
        said = python(
            """
            import largesse
            try:
                largesse.far_memory("64M")
                print("made")
            except largesse.Error as error:
                print(error)
        """,
            env=environment(),
        )
        self.assertRegex(said, "made|large blocks already")


class Tuned(unittest.TestCase):
    def test_without_far_memory_nothing_happens(self):
        with largesse.tuned("core"):
            pass
        self.assertEqual(list(largesse.tuned("core", "abc")), ["a", "b", "c"])

    def test_errors_inside_end_the_core(self):
        with self.assertRaises(ZeroDivisionError), largesse.tuned("core"):
            1 / 0
        for _ in largesse.tuned("core", range(3)):
            break

    def test_wrong_names_are_refused(self):
        for name in ("", 1, None, "a\0b"):
            with self.assertRaisesRegex(largesse.Error, "name must be a text"):
                largesse.tuned(name)


if __name__ == "__main__":
    unittest.main()
