"""Changes made from outside, on the CPU in double precision: the gradients of every step are those of the program as it is.

Needs PyTorch, in this Python or in an environment of the real programs (conformance/venvs.py); else it is skipped.
"""

import glob
import importlib
import importlib.util
import json
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
from torch.optim.optimizer import register_optimizer_step_post_hook
register_optimizer_step_post_hook(keep)  # a step may compute its gradients itself
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


# What makes a model and its data; the loop is the same for all. Dropout is off: a part of a batch draws other numbers.
VIT = """
from transformers import ViTConfig, ViTForImageClassification
model = ViTForImageClassification(ViTConfig(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=16,
                                            patch_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
data = [{"pixel_values": torch.randn(3, 16, 16), "labels": torch.tensor(index % 2)} for index in range(10)]
"""

T5 = """
from transformers import T5Config, T5ForConditionalGeneration
model = T5ForConditionalGeneration(T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=64, dropout_rate=0.0,
                                            decoder_start_token_id=0))
data = [{"input_ids": torch.randint(1, 64, (12,)), "labels": torch.randint(1, 64, (6,))} for _ in range(10)]
"""

LLAMA_LORA = """
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM
model = LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2, vocab_size=64))
model = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.0))
data = [dict.fromkeys(("input_ids", "labels"), torch.randint(0, 64, (12,))) for _ in range(10)]
"""

RESNET = """
from torchvision.models import resnet18
class Net(torch.nn.Module):  # a mean over the samples, and no batch norm, of which a part of a batch has another
    def __init__(self):
        super().__init__()
        self.net = resnet18(num_classes=3, norm_layer=lambda channels: torch.nn.GroupNorm(4, channels))
    def forward(self, x, labels):
        return type("Output", (), {"loss": torch.nn.functional.cross_entropy(self.net(x), labels)})
model = Net()
data = [{"x": torch.randn(3, 32, 32), "labels": torch.tensor(index % 3)} for index in range(10)]
"""

LOOP = """
loader = torch.utils.data.DataLoader(data, batch_size=4)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)  # Adam makes steps of rounding errors
model.train()
PREPARE
for batch in loader:
    loss = model(**batch).loss
    BACKWARD
    optimizer.step()
    optimizer.zero_grad()
torch.save((kept, list(model.state_dict().values()), []), sys.argv[1])
"""

LIGHTNING = """
import lightning
import tempfile
class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)
    def forward(self, x):
        return x + self.narrow(torch.tanh(self.wide(x)))
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(Residual(), Residual(), torch.nn.Linear(8, 3))
    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)
module = Module()
data = torch.utils.data.TensorDataset(torch.randn(24, 8), torch.randint(0, 3, (24,)))
trainer = lightning.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, default_root_dir=tempfile.mkdtemp())
trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=8))
torch.save((kept, list(module.state_dict().values()), []), sys.argv[1])
"""


def loop(model, accelerate=False):
    prepare = "from accelerate import Accelerator; accelerator = Accelerator(cpu=True); model, optimizer, loader = accelerator.prepare(model, optimizer, loader)"
    text = LOOP.replace("PREPARE", prepare if accelerate else "")
    return model + text.replace("BACKWARD", "accelerator.backward(loss)" if accelerate else "loss.backward()")


def blocks(workers=0, zeroes_before=False):
    zero = "optimizer.zero_grad()"
    text = BLOCKS.replace("WORKERS", str(workers))
    return text.replace("BEFORE", zero if zeroes_before else "pass").replace("AFTER", "pass" if zeroes_before else zero)


class FitTest(unittest.TestCase):
    count = 0

    def setUp(self):
        import torch

        torch.set_num_threads(1)  # a forked child waits for ever for the threads of its parent's OpenMP
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_program(self, text, names):
        """In a child of this process, which has imported torch; what is said on stderr is read."""
        self.count += 1
        made, said = (os.path.join(self.folder.name, "%s-%d" % (name, self.count)) for name in ("made", "said"))

        def run():
            with open(said, "w") as sys.stderr:
                run_here(text, names, made)

        self.in_child(run)
        import torch

        with open(said) as words:
            return torch.load(made), words.read()

    def in_child(self, run):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run()
                code = 0
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

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
        self.expect_alike(blocks(), ["half-batch", "quarter-batch", "eighth-batch", "checkpointing", "checkpointing-half", "checkpointing-heaviest=0+3",
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

    def test_states_that_wait_elsewhere_come_back(self):
        """That they wait on the host is for a GPU (conformance/fitted/states.py); here, that a step has them."""
        sys.path.insert(0, PACKAGE)
        from ashlar_gpu.fit import optimizers
        import torch

        parameter = torch.nn.Parameter(torch.ones(3, device="meta"))
        optimizer = torch.optim.Adam([parameter])
        optimizer.state[parameter] = {"step": torch.tensor(1.0), "exp_avg": torch.ones(3)}
        names = {"torch": torch}
        exec(optimizers.MOVE, names)
        names["move"](optimizer, False)
        states = optimizer.state[parameter]
        self.assertEqual((states["exp_avg"].device.type, states["step"].device.type), ("meta", "cpu"))

    def test_a_loss_of_many_classes_in_parts(self):
        text = """
model = torch.nn.Linear(8, 4096)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for reduction in ("mean", "sum", "mean"):
    targets = torch.randint(0, 4096, (21,))
    targets[3] = 5
    loss = torch.nn.CrossEntropyLoss(ignore_index=5, reduction=reduction)(model(torch.randn(21, 8)), targets)
    (loss * 0.5).backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save((kept, list(model.state_dict().values()), []), sys.argv[1])
"""
        self.expect_alike(text, ["chunked-loss"])

    def test_a_trainer(self):
        if not has("transformers") or not has("accelerate"):
            self.skipTest("no transformers and accelerate")
        self.expect_alike(TRAINER, ["half-batch", "checkpointing", "half-batch,checkpointing"])

    def test_models_of_other_kinds(self):
        needs = {"vit": (VIT, "transformers"), "t5": (T5, "transformers"), "llama": (LLAMA_LORA, "peft"), "resnet": (RESNET, "torchvision")}
        for name, (text, module) in needs.items():
            with self.subTest(name):
                if not has(module):
                    self.skipTest("no " + module)
                self.expect_alike(loop(text), ["half-batch,checkpointing"])

    def test_a_loop_of_accelerate_which_reads_a_batch_ahead(self):
        if not has("transformers") or not has("accelerate"):
            self.skipTest("no transformers and accelerate")
        self.expect_alike(loop(VIT, accelerate=True), ["half-batch", "quarter-batch,checkpointing"])

    def test_a_trainer_of_lightning(self):
        if not has("lightning"):
            self.skipTest("no lightning")
        self.expect_alike(LIGHTNING, ["half-batch", "checkpointing"])

    def facts_of(self, text, *more):
        start = "start.start(%s)" % ", ".join(("_imports.after", "None", repr(self.folder.name)) + more)
        script = "import sys; sys.path.insert(0, %r)\nfrom ashlar_gpu import _imports\nfrom ashlar_gpu.fit import start\n%s\n%s"
        command = [sys.executable, "-B", "-c", script % (PACKAGE, start, text)]
        done = subprocess.run(command, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (path,) = glob.glob(os.path.join(self.folder.name, "fit-*.json"))
        with open(path) as file:
            return json.load(file)

    def test_a_program_that_does_not_train_has_calls_for_steps(self):
        text = """
import torch
model = torch.nn.Linear(8, 8).eval()
x = torch.randn(4, 8)
for _ in range(7):
    x = model(x)
"""
        facts = self.facts_of(text)
        self.assertEqual((facts["steps"], facts["trains"]), (7, False))
        (grads,) = [change for change in facts["changes"] if change["name"] == "no-grad-eval"]
        self.assertTrue(grads["applies"])

    def test_operations_of_a_step_are_counted(self):
        text = """
import torch
model = torch.nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    model(torch.randn(4, 8)).mean().backward()
    optimizer.step()
"""
        facts = self.facts_of(text, "counts=True")
        product = 2 * 4 * 8 * 3
        self.assertEqual((facts["steps"], facts["work"]["operations"]), (2, 2 * product))  # forward, and the gradient of the weights
        self.assertEqual((facts["work"]["narrow_operations"], facts["work"]["bus_bytes"]), (0, 0))

    def test_what_a_step_moves_is_counted(self):
        """Tensors of the meta device stand for a GPU's."""
        text = """
import torch
def step(program, counter):
    a = torch.ones(64, 32, dtype=torch.bfloat16).to("meta")       # 4096 bytes over the bus, and written
    b = (a @ a.t()).t()                                            # 2 x 4096 read, 8192 written; a view moves nothing
    b.add_(1)                                                      # 8192 read, 8192 written
    torch._foreach_add_([b], 1)                                    # the same
    torch.empty(9999, device="meta")                               # nothing
    torch.nn.functional.embedding(torch.zeros(4, dtype=torch.long, device="meta"), a)  # 4 ids written; 4 rows read and written
    return 4096 + 2 * 4096 + 8192 + 4 * 8192 + 4 * 8 + 2 * 256
"""
        names = {}
        exec(text, names)
        sys.path.insert(0, PACKAGE)
        import torch
        from ashlar_gpu.fit import operations

        class Program(object):
            steps = 0

        program = Program()
        program.torch = torch
        counter = operations.Counter(program)
        counter.begin()
        moved = names["step"](program, counter)
        counter.stepped()
        counter.traffic.__exit__(None, None, None)
        counter.flops.__exit__(None, None, None)
        product = 2 * 64 * 32 * 64
        self.assertEqual(counter.work, {"operations": product, "narrow_operations": product, "memory_bytes": moved, "bus_bytes": 4096})

    LENGTHS = """
import torch
lengths = [3, 9, 4, 1, 12, 5, 8, 2, 7, 6]
data = [torch.full((length,), length) for length in lengths]
def padded(samples):
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
loader = torch.utils.data.DataLoader(data, batch_size=3, shuffle=SHUFFLE, collate_fn=padded)
model = torch.nn.Embedding(13, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for epoch in range(2):
    seen.append([])
    for ids in loader:
        model(ids).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        seen[-1].append([int(row.max()) for row in ids])
        seen[-1].append(ids.shape[1])
torch.save((seen, torch.rand(2), []), sys.argv[1])
"""

    def batches_of(self, names, shuffle=True):
        (kept, drawn, _), words = self.run_program(self.LENGTHS.replace("SHUFFLE", str(shuffle)), names)
        return [epoch[::2] for epoch in kept], [epoch[1::2] for epoch in kept], drawn.tolist(), words

    def test_the_longest_samples_meet_in_the_first_batch(self):
        _, _, drawn, _ = self.batches_of("")
        samples, _, others, words = self.batches_of("worst-first")
        self.assertNotIn("was not made", words)
        self.assertEqual(drawn, others, "the program draws what it drew before")
        for epoch in samples:
            self.assertEqual(sorted(epoch[0]), [8, 9, 12])
            self.assertEqual(sorted(one for batch in epoch for one in batch), [1, 2, 3, 4, 5, 6, 7, 8, 9, 12])
            self.assertEqual([len(batch) for batch in epoch], [3, 3, 3, 1])
        halves, _, _, _ = self.batches_of("worst-first,half-batch")
        self.assertEqual([sorted(batch) for batch in halves[0][:2]], [[9, 12], [8]])
        own, _, _, words = self.batches_of("worst-first", shuffle=False)
        self.assertIn("the DataLoader does not shuffle", words)
        self.assertEqual(own[0][0], [3, 9, 4])

    def test_batches_of_one_length_come_longest_first(self):
        samples, _, _, words = self.batches_of("one-length")
        self.assertNotIn("was not made", words)
        self.assertEqual(samples[0][0], [12, 9, 8])
        self.assertEqual(sorted(sorted(batch) for batch in samples[0]), [[1], [2, 3, 4], [5, 6, 7], [8, 9, 12]])

    def test_sequences_are_cut(self):
        _, widths, _, words = self.batches_of("length=5")
        self.assertNotIn("was not made", words)
        self.assertEqual(max(max(epoch) for epoch in widths), 5)
        facts = self.facts_of("import sys\nsys.argv = ['train.py', '%s/kept']\n%s" % (self.folder.name, self.LENGTHS.replace("SHUFFLE", "True")))
        self.assertTrue(facts["lengths_vary"])
        (cap,) = [change for change in facts["changes"] if change["name"].startswith("length")]
        self.assertEqual((cap["name"], cap["applies"]), ("length=6", True))
        (one_length,) = [change for change in facts["changes"] if change["name"] == "one-length"]
        self.assertTrue(one_length["applies"])

    def test_two_widths_of_padded_batches_vary(self):
        for lengths, vary in (("[3, 3, 3, 7, 3, 3]", True), ("[3, 3, 3, 3, 3]", False)):  # of the latter the last batch is small
            text = self.LENGTHS.replace("SHUFFLE", "False").replace("[3, 9, 4, 1, 12, 5, 8, 2, 7, 6]", lengths)
            facts = self.facts_of("import sys\nsys.argv = ['train.py', '%s/kept']\n%s" % (self.folder.name, text))
            self.assertEqual(facts["lengths_vary"], vary, lengths)
            for path in glob.glob(os.path.join(self.folder.name, "fit-*.json")):
                os.remove(path)

    def test_the_first_half_is_frozen_and_the_others_learn_as_before(self):
        (grads, _, _), _ = self.run_program(blocks(), "")
        (others, _, _), words = self.run_program(blocks(), "freeze-half")
        self.assertNotIn("was not made", words)
        self.assertEqual((len(grads[0]), len(others[0])), (26, 14))  # two of four blocks of six parameters
        for one, two in zip(grads[0][12:], others[0]):
            self.expect_alike_up_to_clipping(one, two)

    def expect_alike_up_to_clipping(self, one, two):
        """A norm of fewer gradients scales them otherwise: they point the same way."""
        import torch

        self.assertGreater(float(torch.nn.functional.cosine_similarity(one.flatten(), two.flatten(), dim=0)), 1 - 1e-10)

    def test_an_embedding_stays_where_it_is_and_gives_the_same(self):
        sys.path.insert(0, PACKAGE)
        from ashlar_gpu.fit import embeddings
        import torch

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2)).double()
        ids = torch.tensor([3, 1, 3])
        wanted = model[0](ids)
        names = {}
        exec(embeddings.SOURCE, names)
        names["stay_on_host"](model[0])
        self.assertTrue(torch.equal(model[0](ids), wanted))
        model.to("meta")
        self.assertEqual([one.device.type for one in model.parameters()], ["cpu", "meta", "meta"])

    def test_a_batch_of_another_size(self):
        small = loop(VIT).replace("batch_size=4", "batch_size=2")
        (grads, _, _), _ = self.run_program(small, "")
        (others, _, _), words = self.run_program(loop(VIT), "batch-size=2")
        self.assertNotIn("was not made", words)
        self.assertEqual(len(grads), 5)
        for step, other in zip(grads, others):
            for one, two in zip(step, other):
                self.expect_close(one, two, "batch-size=2")

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
    if not names:
        return run_text(KEEPING + text, os.path.join(HERE, "train.py"))
    for change in program_of(KEEPING + text, names.split(",")).changes:
        if change.told()["why_not"]:
            sys.stderr.write("%s was not made: %s\n" % (change.name, change.told()["why_not"]))
    return None


def program_of(text, names, script=os.path.join(HERE, "train.py")):
    """What has run it with these changes."""
    sys.path.insert(0, PACKAGE)
    from ashlar_gpu import _imports
    from ashlar_gpu.fit import start

    programs = []
    start.start(_imports.after, names, made=programs.append)
    run_text(text, script)
    return programs[0]


def run_text(text, script):
    exec(compile(text, script, "exec"), {"__name__": "__main__"})


IMPORTS = ("torch", "transformers.trainer", "transformers.models.vit.modeling_vit", "peft", "torchvision.models", "lightning")
# once, before the children


def has(module):
    return importlib.util.find_spec(module) is not None


def need_torch():
    """Goes on in an interpreter that has it, or is skipped."""
    if not has("torch"):
        folder = os.environ.get("ASHLAR_REAL_VENVS") or os.path.expanduser("~/.cache/ashlar/venvs")
        found = sorted(glob.glob(os.path.join(folder, "torch-2.14*", "bin", "python")))
        if not found or os.environ.get("ASHLAR_FIT_TEST"):
            print("no PyTorch here: neither in this Python nor in " + folder)
            sys.exit(SKIPPED)
        os.environ["ASHLAR_FIT_TEST"] = "1"  # once
        os.execv(found[-1], [found[-1], "-B"] + sys.argv)


def main():
    need_torch()
    for name in IMPORTS:
        if has(name.partition(".")[0]):
            importlib.import_module(name)
    unittest.main()


if __name__ == "__main__":
    main()
