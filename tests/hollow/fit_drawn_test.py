"""Large random fills that a later run leaves out: all other numbers are those of the first run, and what was not drawn there is drawn.

Needs PyTorch, as fit_test.py does; else it is skipped.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import fit_test

# Fills of a MiB and more, and what a program draws beside them. Printed: the large ones' largest values, and all that is small.
PROGRAM = """
import json, sys, torch
torch.manual_seed(SEED)
linear = torch.nn.Linear(1024, 512)
one = torch.nn.init.normal_(torch.empty(1024, 512), std=STD)
other = torch.zeros(512, 1024).random_(1, 9)
own = torch.zeros(600000).uniform_(1, 2, generator=torch.Generator().manual_seed(3))
narrow = torch.zeros(1024, 1024)[:, :512].normal_()
large = [float(x.abs().max()) for x in (one, other, own, narrow)]
small = [float(x) for x in (linear.bias.detach().sum(), torch.randn(5).sum(), torch.zeros(7).exponential_().sum())]
print(json.dumps([large, small, torch.randperm(9).tolist()]))
"""


class FitDrawnTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, leaves, seed=1, std=2.0):
        text = PROGRAM.replace("SEED", str(seed)).replace("STD", str(std))
        start = "import sys; sys.path.insert(0, %r)\nfrom ashlar_gpu import _imports\nfrom ashlar_gpu.fit import start\n" % fit_test.PACKAGE
        if leaves is not None:
            start += "start.start(_imports.after, None, draws=%r, leaves_draws=%r)\n" % (self.folder, leaves)
        done = subprocess.run([sys.executable, "-B", "-c", start + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=True)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_a_later_run_draws_all_but_the_large_fills(self):
        plain = self.run_program(None)
        self.assertEqual(self.run_program(False), plain)
        large, small, order = self.run_program(True)
        self.assertEqual(large[1:3], [0, 0], "they were made of zeros, and are left out")
        self.assertEqual(large[3], plain[0][3], "its memory is not one piece: it is drawn")
        self.assertEqual((small, order), (plain[1], plain[2]))

    def test_what_the_first_run_did_not_draw_is_drawn(self):
        self.run_program(False)
        self.assertEqual(self.run_program(True, seed=2)[0][:2], self.run_program(None, seed=2)[0][:2])
        large, small, order = self.run_program(True, std=3.0)
        other = self.run_program(None, std=3.0)
        self.assertEqual(large[0], other[0][0], "its arguments are others")
        self.assertEqual((small, order), (other[1], other[2]))

    def test_files_that_are_cut_or_not_there_leave_nothing_out(self):
        with open(os.path.join(self.folder, "drawn-7.json"), "w") as out:
            out.write('["cut", "00')
        self.assertEqual(self.run_program(True), self.run_program(None))


if __name__ == "__main__":
    fit_test.main()
