"""What changes write into a program's source: `patch -p0` applies it, and the patched program makes the gradients of the program as it is.

Needs PyTorch, as fit_test.py does; else it is skipped. All runs on the CPU, in double precision.
"""

import os
import subprocess
import sys
import unittest

import fit_test

FORWARD = "        for block in self.blocks:\n            x = block(x, scale=0.5)\n        return self.head(x)\n"
LOOP = """optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=0.01,  # by hand
)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)  # not of len(loader), which counts the parts
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=False)
model.eval()
outputs = []
for x, y in torch.utils.data.DataLoader(data, batch_size=12):
    outputs.append(
        model(x))
torch.save((kept, list(model.state_dict().values()), [one.sum().item() for one in outputs]), sys.argv[1])
"""


class FitPatchTest(fit_test.FitTest):
    trained = {}  # what a program as it is made, by its text

    def setUp(self):
        super().setUp()
        self.script = os.path.join(self.folder.name, "train.py")
        if fit_test.PACKAGE not in sys.path:
            sys.path.insert(0, fit_test.PACKAGE)

    def written(self, text, names):
        """(the diff, the changes that it has), of a run of the text in the folder."""
        with open(self.script, "w") as out:
            out.write(fit_test.KEEPING + text)
        made = os.path.join(self.folder.name, "diff")

        def run():
            from ashlar_gpu.fit import patch

            os.chdir(self.folder.name)
            sys.argv = ["train.py", "made"]
            told = patch.of(fit_test.program_of(fit_test.KEEPING + text, names, "train.py").changes)
            with open(made, "w") as out:
                fit_test.json.dump(told, out)

        self.in_child(run)
        with open(made) as told:
            diff, changes = fit_test.json.load(told)
        return diff, changes

    def patched(self, text, names):
        """The text with a diff that has them all."""
        diff, changes = self.written(text, names)
        self.assertEqual(set(changes), set(names), diff)
        subprocess.run(["patch", "-p0"], input=diff.encode(), cwd=self.folder.name, stdout=subprocess.PIPE, check=True)
        with open(self.script) as file:
            return file.read()

    def run_script(self, text):
        with open(self.script, "w") as out:
            out.write(text)

        def run():
            os.chdir(self.folder.name)
            sys.argv = ["train.py", "made"]
            fit_test.run_text(text, "train.py")

        self.in_child(run)
        import torch

        return torch.load(os.path.join(self.folder.name, "made"))

    def expect_same_training(self, text, patched):
        if text not in self.trained:
            self.trained[text] = self.run_script(fit_test.KEEPING + text)
        grads, weights, losses = self.trained[text]
        other_grads, other_weights, other_losses = self.run_script(patched)
        self.assertEqual(len(other_grads), len(grads))
        for step, others in zip(grads, other_grads):
            self.assertEqual(len(step), len(others))
            for a, b in zip(step, others):
                self.expect_close(a, b, "patched")
        for a, b in zip(weights, other_weights):
            self.expect_close(a, b, "patched")
        for a, b in zip(losses, other_losses):
            self.assertAlmostEqual(a, b, delta=1e-9)

    def program(self):
        head, _, _ = fit_test.BLOCKS.partition("loader = ")
        self.assertIn(FORWARD, head)
        return head.replace("torch.randn(22", "torch.randn(24").replace("(22,)", "(24,)") + LOOP

    def test_all_together(self):
        text = self.program()
        patched = self.patched(text, ["half-batch", "checkpointing", "no-foreach", "set-to-none", "no-grad-eval"])
        for line in (
            "    lr=0.01, foreach=False,  # by hand\n",
            "batch_size=4, shuffle=True",
            "for part, (x, y) in enumerate(loader, 1):",
            "    (loss / 2).backward()",
            "    if part % 2 == 0:\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n        optimizer.step()\n",
            "        optimizer.zero_grad(set_to_none=True)\n",
            "x = torch.utils.checkpoint.checkpoint(block, x, scale=0.5, use_reentrant=False)",
            "    with torch.no_grad():\n        outputs.append(\n            model(x))\n",
        ):
            self.assertIn(line, patched)
        self.expect_same_training(text, patched)

    def test_gradients_of_the_first_part_are_those_that_are_zeroed(self):
        made = "torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)"
        loop = "for index, (x, y) in enumerate(%s):\n    optimizer.zero_grad()\n" % made
        text = self.program().replace("    optimizer.zero_grad(set_to_none=False)\n", "").replace("for x, y in loader:\n", loop)
        patched = self.patched(text, ["quarter-batch"])
        self.assertIn("for part, (index, (x, y)) in enumerate(enumerate(%s), 1):" % made.replace("8", "2"), patched)
        self.assertIn("    if part % 4 == 1:\n        optimizer.zero_grad()\n", patched)
        self.expect_same_training(text, patched)

    def test_gradients_go_right_behind_the_step(self):
        text = self.program().replace("    optimizer.zero_grad(set_to_none=False)\n", "").replace("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")
        patched = self.patched(text, ["early-zero-grad"])
        self.assertIn("    optimizer.step()\n    optimizer.zero_grad()\n", patched)
        self.expect_same_training(text, patched)

    def test_what_cannot_be_written_at_its_place_is_in_no_diff(self):
        for old, new, kept in (
            ("optimizer.step()\n", "optimizer.step(); pass\n", ["no-foreach"]),  # no line of its own
            ("AdamW(\n    model.parameters(),\n    lr=0.01,  # by hand\n)", "AdamW(model.parameters(), **dict(lr=0.01))", ["half-batch"]),
            ("loss.backward()", "total = loss.backward()", ["half-batch", "no-foreach"]),
            ("    torch.nn.utils.clip", "    norm = torch.nn.utils.clip", ["no-foreach"]),  # its value may be used
        ):
            text = self.program().replace(old, new)
            self.assertNotEqual(text, self.program())
            self.assertEqual(sorted(self.written(text, ["half-batch", "no-foreach"])[1]), kept)

    def written_into(self, text, name):
        """The text with the change's diff; the text as it is where there is none."""
        diff, changes = self.written(text, [name])
        self.assertEqual(changes, [name] if diff else [])
        if diff:
            subprocess.run(["patch", "-p0"], input=diff.encode(), cwd=self.folder.name, stdout=subprocess.PIPE, check=True)
        with open(self.script) as file:
            return file.read()

    def library(self, text):
        """A module that is none of the program's."""
        folder = os.path.join(self.folder.name, "site-packages")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "library.py"), "w") as out:
            out.write("import torch\n" + text)
        return "sys.path.insert(0, %r)\nimport library\n" % folder

    def test_what_a_library_makes_is_in_no_diff(self):
        made = self.program()
        optimizer, loader = made[made.index("torch.optim.AdamW"):made.index("loader = ")].strip(), "torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)"
        library = self.library(
            "def optimizer_of(model):\n    return torch.optim.AdamW(model.parameters(), lr=0.01)\n"
            "def AdamW(model):\n    return torch.optim.AdamW(model.parameters(), lr=0.01)\n"
            "def loader_of(data, size):\n    return torch.utils.data.DataLoader(data, size, shuffle=True)\n"
            "def output_of(model, x):\n    return model(x)\n")
        own = "def make(kind):\n    return kind(model.parameters(), lr=0.01)\n\n\n"
        for name, old, new in (
            ("fused-optimizer", optimizer, "library.optimizer_of(model)"),
            ("fused-optimizer", optimizer, "library.AdamW(model)"),  # of the same name
            ("fused-optimizer", "optimizer = " + optimizer, own + "optimizer = make(torch.optim.AdamW)"),
            ("sgd", optimizer, "library.AdamW(model)"),
            ("half-batch", loader, "library.loader_of(data, 8)"),
            ("freeze-half", "model(x), y", "output_of(model, x), y"),
        ):
            self.assertIn(old, made)
            text = library + "output_of = library.output_of\n" + made.replace(old, new)
            self.assertEqual(self.written_into(text, name), fit_test.KEEPING + text, name)

    def test_arguments_that_a_parser_reads_are_in_no_diff(self):
        if not fit_test.has("transformers") or not fit_test.has("accelerate"):
            self.skipTest("no transformers and accelerate")
        names = ["half-batch", "checkpointing", "autocast", "fused-optimizer"]
        values = dict(per_device_train_batch_size=4, report_to="none", use_cpu=True, optim="adamw_torch", save_strategy="no")
        head, _, rest = fit_test.TRAINER.partition("arguments = TrainingArguments(")
        rest = rest.partition("\n")[2].partition("\n")[2]
        read = "from transformers import HfArgumentParser\n(arguments,) = HfArgumentParser(TrainingArguments).parse_dict(dict(%r, output_dir=tempfile.mkdtemp()))\n" % values
        diff, changes = self.written(head + read + rest, names)
        self.assertEqual((diff, changes), ("", []))
        given = "arguments = TrainingArguments(tempfile.mkdtemp(), %s)\n" % ", ".join("%s=%r" % one for one in values.items())
        patched = self.patched(head + given + rest, names)
        for text in ("per_device_train_batch_size=2", "gradient_accumulation_steps=2", "gradient_checkpointing=True", "bf16=True", 'optim="adamw_torch_fused"'):
            self.assertIn(text, patched)

    def test_arguments_are_written_into_a_call_of_that_name(self):
        from ashlar_gpu.fit import edits, source

        for text, is_written in (("trainer = lightning.Trainer(max_epochs=1)\n", True), ("trainer = Trainer(precision=32)\n", True),
                                 ("cli = LightningCLI(Module, Data)\n", False), ("trainer.fit(model)\n", False), ("Trainer(**options)\n", False)):
            made = source.Source(text.encode())
            call = next(node for node in edits.ast.walk(made.tree) if isinstance(node, edits.ast.Call))
            pieces = edits.keywords("Trainer", precision='"bf16-mixed"')(made, call)
            self.assertEqual(pieces is not None, is_written, text)

    def test_another_optimizer(self):
        plain = self.program().replace("    model.parameters(),\n    lr=0.01,  # by hand\n", "model.parameters(), 0.01")
        for text in (plain, plain.replace("0.01", "lr=0.01, weight_decay=0.1")):
            self.assertIn("optimizer = torch.optim.SGD(", self.patched(text, ["sgd"]))
        self.assertIn("optimizer = torch.optim.SGD(\nmodel.parameters(), 0.01, foreach=False)", self.patched(plain, ["no-foreach", "sgd"]))
        for arguments in ("model.parameters(), betas=(0.9, 0.99)", "model.parameters(), 0.01, (0.9, 0.99)", "*[model.parameters()]"):
            text = plain.replace("model.parameters(), 0.01", arguments)
            self.assertNotIn("SGD", self.written_into(text, "sgd"), "SGD takes them in another way")

    def test_autocast_from_the_forward_pass_to_backward(self):
        narrow = "torch.set_default_dtype(torch.float32)\n" + self.program()
        text = narrow.replace("    loss = torch", "    x = x.to(x.device)\n    loss = torch").replace("    loss.backward()", "    total = (\n        loss + 0)\n    loss.backward()")
        patched = self.patched(text, ["autocast"])
        self.assertIn(
            "    with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n"
            "        loss = torch.nn.functional.cross_entropy(model(x), y)\n"
            "        total = (\n            loss + 0)\n"
            "    loss.backward()\n", patched)
        self.expect_same_training(text, patched)  # on the CPU it is nothing
        for old, new in (("model(x), y)", "model(x.relu()), y)"), ("    loss.backward()\n", "    if True:\n        loss.backward()\n")):
            self.assertNotIn("autocast", self.written_into(narrow.replace(old, new), "autocast"))

    def test_weights_in_16_bits_where_the_model_moves_and_where_it_is_called(self):
        moves = "model = Model()\ntry:\n    model.cuda()\nexcept Exception:\n    pass  # no GPU is here\n"
        text = "torch.set_default_dtype(torch.float32)\n" + self.program().replace("model = Model()\n", moves)
        patched = self.patched(text, ["bf16-weights"])
        for line in ("    model.to(torch.bfloat16).cuda()\n", "cross_entropy(model(x.to(torch.bfloat16)), y)\n", "        model(x.to(torch.bfloat16)))\n"):
            self.assertIn(line, patched)
        (grads, _, outputs), words = self.run_program(text, "bf16-weights")
        self.assertNotIn("was not made", words)
        others, _, other_outputs = self.run_script(patched)
        self.assertEqual({one.dtype.itemsize for step in others for one in step}, {2})
        for one, two in zip((one for step in grads for one in step), (one for step in others for one in step)):
            self.assertTrue(one.allclose(two, rtol=0.05, atol=0.01), (one, two))
        for one, two in zip(outputs, other_outputs):
            self.assertAlmostEqual(one, two, delta=0.1 * abs(one))
        for old, new in (("model(x), y)", "model(x.relu()), y)"),  # what is cast may be freed before the call's end
                         ("model.cuda()", "torch.nn.Module.cuda(model)"), ("    outputs.append(\n        model(x))", "    outputs.append(torch.nn.Sequential(model)(x))")):
            self.assertIn(old, text)
            self.assertNotIn("bfloat16", self.written_into(text.replace(old, new), "bf16-weights"), new)

    def test_sequences_are_cut_where_the_loader_is_made(self):
        text = self.LENGTHS.replace("SHUFFLE", "True")
        (wanted, _, _), _ = self.run_program(text, "length=5")
        patched = self.patched(text, ["length=5"])
        self.assertIn("shuffle=True, collate_fn=Shortened(padded, 5))\n", patched)
        self.assertEqual(self.run_script(patched)[0], wanted)
        one_length = text.replace("(length,)", "(6,)").replace(", collate_fn=padded", "")
        patched = self.patched(one_length, ["length=4"])
        self.assertIn("shuffle=True, collate_fn=Shortened(torch.utils.data.default_collate, 4))\n", patched)
        self.assertEqual({width for epoch in self.run_script(patched)[0] for width in epoch[1::2]}, {4})
        loader = "torch.utils.data.DataLoader(data, batch_size=3, shuffle=True, collate_fn=padded)"
        self.assertIn(loader, text)
        for made in ("made = [%s for _ in range(2)]\nloader = made[0]" % loader,  # one of two is trained with
                     loader.replace("collate_fn=padded", "**dict(collate_fn=padded)").join(("loader = ", "")), "class Shortened: pass\nloader = " + loader):
            self.assertNotIn("Shortened(", self.written_into(text.replace("loader = " + loader, made), "length=5"), made)

    def test_blocks_by_their_places(self):
        text = self.program().replace("x = block(x, scale=0.5)\n", "x = block(x, scale=0.5)  # of four\n")
        patched = self.patched(text, ["checkpointing-half"])
        self.assertIn("for index, block in enumerate(self.blocks):\n            x = torch.utils.checkpoint.checkpoint(block, x, scale=0.5, use_reentrant=False)"
                      " if index % 2 == 0 else block(x, scale=0.5)  # of four\n", patched)
        self.expect_same_training(text, patched)
        self.assertIn(" if index in {0, 3} else block(x, scale=0.5)", self.patched(text, ["checkpointing-heaviest=0+3"]))
        text = text.replace("for block in self.blocks:", "for block in list(self.blocks):")
        self.assertNotIn("checkpoint(", self.written_into(text, "checkpointing-half"), "it may go over other blocks")

    def test_half_of_the_blocks_frozen(self):
        text = self.program()
        patched = self.patched(text, ["freeze-half"])
        self.assertIn("for frozen in model.blocks[:2]:\n    frozen.requires_grad_(False)\nfor x, y in loader:\n", patched)
        grads, _, _ = self.run_script(patched)
        self.assertLess(len(grads[0]), len(self.run_script(fit_test.KEEPING + text)[0][0]))
        self.assertNotIn("requires_grad_", self.written_into(text.replace("outputs = []", "outputs = frozen = []"), "freeze-half"))

    def test_states_that_wait_on_the_host(self):
        from ashlar_gpu.fit import edits, optimizers, source

        text = b"import torch\n\n\ndef train(optimizer):\n    for step in range(3):\n        optimizer.step()\n\n\ntrain(torch.optim.Adam([torch.zeros(3)]))\n"
        edit = edits.beside(("step",), "move(%s, False)", "move(%s, True)", "move", optimizers.MOVE)
        for old, new, is_written in ((b"", b"", True), (b"optimizer.step()", b"scaler.step(optimizer)", True), (b"optimizer.step()", b"self.optimizer.step()", False),
                                     (b"def train", b"def move(one):\n    pass\n\n\ndef train", False)):
            made = source.Source(text.replace(old, new) if old else text)
            call = next(node for node in edits.ast.walk(made.tree) if isinstance(node, edits.ast.Call) and made.words(node).endswith((".step()", ".step(optimizer)")))
            self.assertEqual(edit(made, call) is not None, is_written, new)

    def test_what_a_model_gave_is_deleted_behind_the_step(self):
        from ashlar_gpu.fit import edits, source

        text = "for step in range(3):\n    a, b = model(x)\n    loss = a + b\n    loss.backward()\n    optimizer.step()\n    print(step)\n"
        for old, new, is_written in (
            ("", "", True),
            ("print(step)", "print(a)", False),  # read behind it
            ("a, b = model(x)", "a, b = model(a)", False),  # read before it is made
            ("    a, b = model(x)", "    if x:\n        a, b = model(x)", False),  # not made in each turn
            ("    optimizer.step()", "    if step:\n        optimizer.step()", False),
            ("for step", "a = 0\nfor step", False),
        ):
            made = source.Source(text.replace(old, new).encode() if old else text.encode())
            call = next(node for node in edits.ast.walk(made.tree) if isinstance(node, edits.ast.Call) and made.words(node) == "optimizer.step()")
            pieces = edits.deleted_behind(["a", "b"])(made, call)
            self.assertEqual(pieces is not None, is_written, new)
            if is_written:
                self.assertIn(b"    optimizer.step()\n    del a, b\n", source.put(made.text, pieces))

    def test_a_call_of_another_loss(self):
        from ashlar_gpu.fit import edits, loss, source

        for text, is_written in (("loss = F.cross_entropy(model(x), y)\n", True), ("loss = F.cross_entropy(model(x), y, reduction=r)\n", False), ("loss = model(x, y)\n", False)):
            made = source.Source(("import torch\n" + text).encode())
            call = made.tree.body[1].value
            pieces = edits.calls_instead("cross_entropy", "chunked_loss", loss.WRITTEN)(made, call)
            self.assertEqual(pieces is not None, is_written, text)
            if is_written:
                names = {}
                exec(source.put(made.text, pieces).decode().partition("\nloss = ")[0], names)
                torch = names["torch"]
                one, other = (torch.randn(21, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_() for _ in range(2))
                targets = torch.arange(21) % 9
                targets[2] = -100
                names["chunked_loss"](one, targets).backward()
                torch.nn.functional.cross_entropy(other, targets).backward()
                self.expect_close(one.grad, other.grad, text)


for name in [one for one in dir(fit_test.FitTest) if one.startswith("test_")]:
    setattr(FitPatchTest, name, None)  # those of the other program

if __name__ == "__main__":
    fit_test.main()
