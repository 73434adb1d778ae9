"""Processors, NUMA nodes and time."""

import os
import time
import unittest

import largesse
from support import fresh


class Machine(unittest.TestCase):
    def test_permitted_processors_are_those_of_the_kernel(self):
        found = largesse.machine()
        self.assertEqual({cpu.cpu for cpu in found.processors if cpu.permitted}, os.sched_getaffinity(0))
        self.assertTrue(all(found.distances[node.node, node.node] in (10, None) for node in found.nodes))
        self.assertIn(found.counter, repr(found))


class Pin(unittest.TestCase):
    def test_processors_are_bound_in_every_form(self):
        cpu = max(os.sched_getaffinity(0))
        for words in (repr(str(cpu)), str(cpu), f"[{cpu}]", f"range({cpu}, {cpu + 1})", f"{{{cpu}}}"):
            said = fresh(f"import os, largesse; largesse.pin({words}); print(os.sched_getaffinity(0))")
            self.assertEqual(said, str({cpu}))

    def test_one_thread_is_bound_alone(self):
        said = fresh("""
            import os, threading, largesse
            cpu = max(os.sched_getaffinity(0))
            def bind():
                largesse.pin(cpu, process=False)
                print(os.sched_getaffinity(0) == {cpu})
            before = os.sched_getaffinity(0)
            thread = threading.Thread(target=bind)
            thread.start(); thread.join()
            print(os.sched_getaffinity(0) == before)
        """)
        self.assertEqual(said, "True\nTrue")

    def test_wrong_processors_are_refused(self):
        before = os.sched_getaffinity(0)
        for cpus, words in [
            ([], "from 0 on"),
            ([-1], "from 0 on"),
            ([1.5], "from 0 on"),
            (None, "from 0 on"),
            (True, "from 0 on"),
            ("", "processor"),
            ("0\0", "list such as"),
            ("4000", "4000"),
            ("a-b", "a-b"),
        ]:
            with self.assertRaisesRegex(largesse.Error, words):
                largesse.pin(cpus)
        self.assertEqual(os.sched_getaffinity(0), before)


class Cycles(unittest.TestCase):
    def test_time_is_that_of_the_clock(self):
        watch = largesse.cycles()
        begun = time.perf_counter()
        for _ in range(3):
            with watch:
                time.sleep(0.02)
        spent = time.perf_counter() - begun
        self.assertGreaterEqual(watch.best, 0.0199e9)
        self.assertLessEqual(sum(watch.ns), spent * 1.01e9)
        self.assertTrue(watch.best <= watch.median <= max(watch.ns))
        self.assertIn("of 3", repr(watch))

    def test_nested_blocks_are_timed_each(self):
        watch = largesse.cycles()
        with watch:
            time.sleep(0.05)
            with watch:
                pass
        self.assertLess(watch.ns[0] + 0.0499e9, watch.ns[1])

    def test_nothing_timed_is_an_error(self):
        with self.assertRaisesRegex(largesse.Error, "nothing was timed"):
            largesse.cycles().best


if __name__ == "__main__":
    unittest.main()
