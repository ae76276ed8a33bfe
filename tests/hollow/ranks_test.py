"""The store of one rank among absent ones: what its peers would have set, added and waited for.

    python3 ranks_test.py [PATH OF hollow/python]
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

from python_test import PYTHON_SIDE

sys.path.insert(0, PYTHON_SIDE)

from ashlar_hollow.ranks import host, store, told  # noqa: E402

TORCH = types.SimpleNamespace(Store=object, DistStoreError=KeyError)


class Rank(object):
    """A rank of four with its store; ranks of one folder are run one after the other."""

    def __init__(self, folder, rank, world=4):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), ASHLAR_RECORD=folder)
        self.told = told.Told(folder)
        self.store = store.store_class(TORCH, self.told)()


class Stores(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        self.addCleanup(setattr, store, "PATIENCE_SECONDS", store.PATIENCE_SECONDS)
        store.PATIENCE_SECONDS = 0.3

    def test_what_a_rank_set_is_heard_by_those_that_run_after_it(self):
        Rank(self.folder, 0).store.set("config", "five")
        self.assertEqual(Rank(self.folder, 3).store.get("config"), b"five")

    def test_a_peers_key_is_answered_by_our_own_of_the_same_form(self):
        rank = Rank(self.folder, 2)
        rank.store.set("part/2/size", "17")
        self.assertEqual(rank.store.multi_get(["part/%d/size" % other for other in range(4)]), [b"17"] * 4)

    def test_a_peers_own_word_goes_before_a_copy_of_ours(self):
        Rank(self.folder, 0).store.set("part/0", "first")
        rank = Rank(self.folder, 1)
        rank.store.set("part/1", "second")
        self.assertEqual(rank.store.get("part/0"), b"first")
        self.assertEqual(rank.store.get("part/3"), b"second")

    def test_a_barrier_that_counts_is_passed(self):
        for number in (0, 2, 3):
            rank = Rank(self.folder, number)
            self.assertEqual(rank.store.add("barrier", 1), number + 1)
            self.assertEqual(rank.store.add("barrier", 0), 4)
            rank.store.wait(["barrier:last_worker"])

    def test_a_group_counts_its_own_ranks(self):
        rank = Rank(self.folder, 3)
        rank.told.group("pair", [1, 3])
        self.assertEqual(rank.store.add("default/pair//barrier", 1), 2)
        self.assertEqual(rank.store.add("default/pair//barrier", 0), 2)

    def test_what_nobody_sets_is_named_and_not_waited_for_for_ever(self):
        rank = Rank(self.folder, 1)
        with self.assertRaises(KeyError) as raised:
            rank.store.get("address of the server")
        self.assertIn("rank 1 of 4 waits for the key 'address of the server'", str(raised.exception))
        self.assertIn("ranks_test.py:", str(raised.exception))
        with self.assertRaises(KeyError):
            while not rank.store.check(["the same by asking"]):
                time.sleep(0.01)

    def test_a_key_that_another_thread_sets_is_waited_for(self):
        rank = Rank(self.folder, 0)
        threading.Timer(0.1, rank.store.set, ("late", "now")).start()
        self.assertEqual(rank.store.get("late"), b"now")

    def test_compare_set_is_that_of_a_store(self):
        rank = Rank(self.folder, 0)
        self.assertEqual(rank.store.compare_set("key", "other", "mine"), b"other")
        self.assertEqual(rank.store.compare_set("key", "", "mine"), b"mine")
        self.assertEqual(rank.store.compare_set("key", "other", "again"), b"mine")
        self.assertEqual(rank.store.compare_set("key", "mine", "again"), b"again")

    def test_a_communicators_id_tells_which_group_is_used(self):
        rank = Rank(self.folder, 1)
        rank.told.group("0", [])
        rank.told.group("5", [1, 3])
        rank.store.set("default_pg/5//cuda//0", b"ashlar-nccl-" + b"a" * 32)
        rank.store.set("default_pg/0//cuda//1:3", b"ashlar-nccl-" + b"b" * 32)  # of two ranks that send
        self.assertEqual(rank.told.used, [[1, 3]])
        self.assertEqual(rank.told.groups, [[0, 1, 2, 3], [1, 3]])


class Launchers(unittest.TestCase):
    def test_torchrun_becomes_its_script(self):
        code = ("import sys, types; sys.path.insert(0, %r)\n"
                "from ashlar_hollow.ranks import launchers\n"
                "run = types.SimpleNamespace(config_from_args=lambda args: (None, sys.executable, ['-c', 'print(6 * 7)']))\n"
                "launchers.install(run); run.run(None); print('not here')" % PYTHON_SIDE)
        self.assertEqual(subprocess.check_output([sys.executable, "-c", code]), b"42\n")


class Gloo(unittest.TestCase):
    def test_its_class_makes_another_group_and_is_its_own_in_all_else(self):
        class Real(object):
            options = "of Gloo"

        class Fake(object):
            def __init__(self, rank, size):
                self.rank, self.size = rank, size

        kind = host.gloo_class(Real, Fake)
        made = kind("a store", 3, 8, timeout=5)
        self.assertEqual((type(made), made.rank, made.size), (Fake, 3, 8))
        self.assertIsInstance(made, kind)
        self.assertIsInstance(Real(), kind)
        self.assertEqual(kind.options, "of Gloo")

    def test_each_peer_sends_what_this_rank_sends_to_itself(self):
        class Tensor(object):
            def __init__(self, values):
                self.values, self.shape = values, (len(values),)

            def detach(self):
                return self

            def copy_(self, other):
                self.values[:] = other.values

            def split(self, sizes):
                ends = [sum(sizes[: i + 1]) for i in range(len(sizes))] if isinstance(sizes, list) else list(
                    range(sizes, len(self.values) + 1, sizes))
                return [Tensor(self.values[begin:end]) for begin, end in zip([0] + ends, ends)]

        group = types.SimpleNamespace(rank=lambda: 2, size=lambda: 3)
        ours, heard = [Tensor([1]), Tensor([2, 3]), Tensor([4, 5])], [Tensor([0, 0]), Tensor([9]), Tensor([0, 0])]
        host.Host._after_all_to_all(host.Host, heard, {"input_tensor_list": ours}, group)
        self.assertEqual([tensor.values for tensor in heard], [[4, 5], [9], [4, 5]])  # another length: nothing is known
        whole = Tensor([1, 2, 3, 4, 5])
        self.assertEqual([part.values for part in host._parts(whole, [1, 2, 2], group)], [[1], [2, 3], [4, 5]])
        self.assertEqual([part.values for part in host._parts(Tensor([1, 2, 3]), None, group)], [[1], [2], [3]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
