"""Changes made from outside, on the CPU in double precision: the gradients of every step are those of the program as it is.

Needs PyTorch, in this Python or in an environment of the real programs (conformance/venvs.py); else it is skipped.
"""

import glob
import os
import subprocess
import sys
import tempfile
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python")
SKIPPED = 77

# Each program keeps the gradients that every step takes, and the parameters at the end, in the file that it is given.
KEEPING = """
import sys
import torch
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
kept = []
def keep(optimizer, args, kwargs):
    kept.append([p.grad.clone() for g in optimizer.param_groups for p in g["params"] if p.grad is not None])
from torch.optim.optimizer import register_optimizer_step_pre_hook
register_optimizer_step_pre_hook(keep)
"""

BLOCKS = """
class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width))
    def forward(self, x, scale=1.0):
        return x + scale * self.mlp(self.norm(x))
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(8) for _ in range(4))
        self.head = torch.nn.Linear(8, 3)
    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=0.5)
        return self.head(x)
model = Model()
data = torch.utils.data.TensorDataset(torch.randn(22, 8), torch.randint(0, 3, (22,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=WORKERS, persistent_workers=WORKERS > 0)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2 * len(loader))
losses = []
for epoch in range(2):
    model.train()
    for x, y in loader:
        BEFORE
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        AFTER
    model.eval()
    for x, y in loader:
        losses.append(float(torch.nn.functional.cross_entropy(model(x), y)))
torch.save((kept, list(model.state_dict().values()), losses), sys.argv[1])
"""

GPT2 = """
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_head=2, n_embd=16, vocab_size=64, n_positions=32, resid_pdrop=0.0,
                                   embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager"))
data = [torch.randint(0, 64, (12,)) for _ in range(10)]
loader = torch.utils.data.DataLoader(data, batch_size=4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model.train()
for ids in loader:
    loss = model(ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save((kept, list(model.state_dict().values()), []), sys.argv[1])
"""

TRAINER = """
import os, tempfile
os.environ["CUDA_VISIBLE_DEVICES"] = ""
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments
model = BertForMaskedLM(BertConfig(num_hidden_layers=2, hidden_size=16, num_attention_heads=2, intermediate_size=32, vocab_size=64,
                                   hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
data = []
for _ in range(16):
    ids = torch.randint(0, 64, (12,))
    data.append({"input_ids": ids, "labels": ids})
arguments = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, num_train_epochs=1, report_to=[], use_cpu=True,
                              save_strategy="no", disable_tqdm=True)
Trainer(model, arguments, train_dataset=data).train()
torch.save((kept, list(model.state_dict().values()), []), sys.argv[1])
"""


def blocks(workers=0, zeroes_before=False):
    zero = "optimizer.zero_grad()"
    text = BLOCKS.replace("WORKERS", str(workers))
    return text.replace("BEFORE", zero if zeroes_before else "pass").replace("AFTER", "pass" if zeroes_before else zero)


class FitTest(unittest.TestCase):
    count = 0

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_program(self, text, names):
        """In a child of this process, which has imported torch; what is said on stderr is read."""
        self.count += 1
        made, said = (os.path.join(self.folder.name, "%s-%d" % (name, self.count)) for name in ("made", "said"))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with open(said, "w") as sys.stderr:
                    run_here(text, names, made)
                    code = 0
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        import torch

        with open(said) as words:
            return torch.load(made), words.read()

    def expect_alike(self, text, changes):
        (grads, weights, losses), _ = self.run_program(text, "")
        self.assertGreater(len(grads), 2)
        for names in changes:
            (other_grads, other_weights, other_losses), words = self.run_program(text, names)
            self.assertNotIn("was not made", words, names)
            self.assertEqual(len(other_grads), len(grads), names)
            for step, other in zip(grads, other_grads):
                self.assertEqual(len(step), len(other), names)
                for one, two in zip(step, other):
                    self.expect_close(one, two, names)
            for one, two in zip(weights, other_weights):
                self.expect_close(one, two, names)
            self.assertEqual(len(other_losses), len(losses))
            for one, two in zip(losses, other_losses):
                self.assertAlmostEqual(one, two, delta=1e-9)

    def expect_close(self, one, two, names):
        scale = max(float(one.abs().max()), 1e-6)  # what is 0 but for rounding, as the bias of keys, has no relative error
        self.assertLess(float((one - two).abs().max()) / scale, 1e-10, names)

    def test_a_loop_of_blocks(self):
        self.expect_alike(blocks(), ["half-batch", "quarter-batch", "eighth-batch", "checkpointing", "checkpointing-half",
                                     "half-batch,checkpointing,no-foreach,no-grad-eval"])

    def test_gradients_zeroed_before_the_forward_pass(self):
        self.expect_alike(blocks(zeroes_before=True), ["half-batch", "early-zero-grad,quarter-batch"])

    def test_workers_that_read_ahead_and_stay(self):
        self.expect_alike(blocks(workers=2), ["half-batch"])

    def test_a_copy_of_the_model_has_weights_of_its_own(self):
        copied = """
import copy
other = copy.deepcopy(model).train()
with torch.no_grad():
    for one in other.parameters():
        one.zero_()
losses.append(float(other(data.tensors[0]).detach().abs().sum()))
torch.save"""
        (_, _, losses), _ = self.run_program(blocks().replace("\ntorch.save", copied), "checkpointing")
        self.assertEqual(losses[-1], 0)

    def test_a_model_of_transformers(self):
        if not has("transformers"):
            self.skipTest("no transformers")
        self.expect_alike(GPT2, ["half-batch", "checkpointing", "no-cache,quarter-batch,checkpointing", "sdpa"])

    def test_a_trainer(self):
        if not has("transformers") or not has("accelerate"):
            self.skipTest("no transformers and accelerate")
        self.expect_alike(TRAINER, ["half-batch", "checkpointing", "half-batch,checkpointing"])

    def test_the_command_line(self):
        script, made = (os.path.join(self.folder.name, name) for name in ("train.py", "made"))
        with open(script, "w") as out:
            out.write(KEEPING + blocks())
        path = os.pathsep.join(part for part in (PACKAGE, os.environ.get("PYTHONPATH")) if part)

        def run(*words):
            return subprocess.run([sys.executable, "-B", "-m", "ashlar_gpu.fit"] + list(words), env=dict(os.environ, PYTHONPATH=path),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

        done = run("--with", "sdpa,half-batch", script, made)
        self.assertEqual((done.returncode, os.path.exists(made)), (0, True), done.stderr)
        self.assertIn("sdpa was not made: no model of transformers is trained", done.stderr)
        self.assertNotIn("half-batch was not made", done.stderr)
        for words, said in (
            (["--with", "half", script], "there is no change 'half'"),
            (["--with", "half-batch,quarter-batch", script], "two of one group"),
            (["--with", "half-batch"], "which program?"),
            ([script], "--with"),
        ):
            wrong = run(*words)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(said, wrong.stderr)
        self.assertIn("there is no file", run("--with", "sdpa", script + "x").stderr)

    def test_a_loss_that_is_no_mean_is_seen(self):
        """That the comparison can fail: a sum over the samples is no mean over them."""
        text = blocks().replace("cross_entropy(model(x), y)\n        loss", 'cross_entropy(model(x), y, reduction="sum")\n        loss')
        with self.assertRaises(AssertionError):
            self.expect_alike(text, ["half-batch"])


def run_here(text, names, made):
    import torch

    torch.set_num_threads(1)
    sys.argv = ["train.py", made]
    if names:
        sys.path.insert(0, PACKAGE)
        from ashlar_gpu import _imports
        from ashlar_gpu.fit import start

        programs = []
        start.start(_imports.after, names.split(","), made=programs.append)
    exec(compile(KEEPING + text, os.path.join(HERE, "train.py"), "exec"), {"__name__": "__main__"})
    for change in programs[0].changes if names else ():
        if change.told()["why_not"]:
            sys.stderr.write("%s was not made: %s\n" % (change.name, change.told()["why_not"]))


def has(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


def main():
    if not has("torch"):
        folder = os.environ.get("ASHLAR_REAL_VENVS") or os.path.expanduser("~/.cache/ashlar/venvs")
        found = sorted(glob.glob(os.path.join(folder, "torch-2.14*", "bin", "python")))
        if not found or os.environ.get("ASHLAR_FIT_TEST"):
            print("no PyTorch here: neither in this Python nor in " + folder)
            sys.exit(SKIPPED)
        os.environ["ASHLAR_FIT_TEST"] = "1"  # once
        os.execv(found[-1], [found[-1], "-B"] + sys.argv)
    import torch  # noqa: F401  (once, before the children)

    unittest.main()


if __name__ == "__main__":
    main()
