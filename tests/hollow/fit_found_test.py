"""What changes find in a program as it is: whether there is a place for them, what they say of it, and whether they alter results.

Needs PyTorch, as fit_test.py does; else it is skipped. All runs on the CPU.
"""

import json
import os
import re
import sys

import fit_test


class FitFoundTest(fit_test.FitTest):
    def looked_on(self, text):
        """What each change found in the program as it is, by its name."""
        told = os.path.join(self.folder.name, "told")

        def run():
            sys.argv = ["train.py", os.path.join(self.folder.name, "made")]
            program = fit_test.program_of(fit_test.KEEPING + text, None)
            program.tell("on_end")
            with open(told, "w") as out:
                json.dump({change.told()["name"]: change.told() for change in program.changes}, out)

        self.in_child(run)
        with open(told) as out:
            return json.load(out)

    COUNTED = """
model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9))
data = [torch.full((6,), 3) for _ in range(8)]
SHORTER
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for ids in torch.utils.data.DataLoader(data, batch_size=4, COLLATE):
    loss = torch.nn.functional.LOSS
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

    def test_parts_that_count_otherwise_than_the_whole_batch_alter_results(self):
        plain, masked = "cross_entropy(model(ids).flatten(0, 1), ids.flatten(), ignore_index=0)", "data[1][4:] = 0"
        rows = (
            (plain, "", "", ""),
            (plain, masked, "", "loss-weights"),
            (plain.replace("ignore_index=0", 'ignore_index=0, reduction="sum"'), masked, "", ""),
            (plain.replace("ignore_index=0", "ignore_index=7"), masked, "", ""),
            (plain, "for one in data: one[4:] = 0", "", ""),  # all alike
            ("cross_entropy(model(ids).movedim(2, 1), ids, ignore_index=0)", masked, "", "loss-weights"),
            ("nll_loss(model(ids).flatten(0, 1).log_softmax(1), ids.flatten(), ignore_index=0)", masked, "", "loss-weights"),
            (plain, "data[1] = data[1][:3]; data[5] = data[5][:2]; data[6] = data[6][:1]", "collate_fn=torch.cat", "loss-weights"),
            ("cross_entropy(model(ids).mean(1), ids[:, 0], ignore_index=0)", "", "", ""),  # a mean over the samples
        )
        for loss, shorter, collate, alters in rows:
            text = self.COUNTED.replace("LOSS", loss).replace("SHORTER", shorter).replace("COLLATE", collate)
            if collate:
                text = text.replace("data = [", "data = 3 * [").replace("flatten(0, 1)", "reshape(-1, 9)")
            row = self.looked_on(text)["half-batch"]
            self.assertEqual((row["applies"], row["alters"]), (True, alters), text)

    def test_what_is_kept_of_an_output_is_known_by_its_name(self):
        sys.path.insert(0, fit_test.PACKAGE)
        from ashlar_gpu.fit import evaluation
        import collections
        import torch

        class OnDevice(torch.Tensor):
            is_cuda = True

            def cpu(self):
                return torch.zeros(self.shape)

        class Program(object):
            has_trainer = False

        program, Pair = Program(), collections.namedtuple("Pair", "loss logits")
        program.torch = torch

        def outputs():
            return {"loss": OnDevice(torch.ones(1)), "logits": OnDevice(torch.ones(3))}

        for make, take, line in (
            (outputs, lambda out: out["logits"], "append(output['logits'].cpu()) in place of append(output['logits'])"),
            (lambda: collections.OrderedDict(outputs()), lambda out: out["logits"], "append(output.logits.cpu()) in place of append(output.logits)"),
            (lambda: Pair(**outputs()), lambda out: out.logits, "append(output[1].cpu()) in place of append(output[1])"),
            (lambda: tuple(outputs().values()), lambda out: out[1], "append(output[1].cpu()) in place of append(output[1])"),
            (lambda: outputs()["logits"], lambda out: out, "append(output.cpu()) in place of append(output)"),
        ):
            for is_on in (False, True):
                change, kept = evaluation.OutputsToHost(program, is_on), []
                for _ in range(4):
                    given = make()
                    out = change.on_output(None, given, False, None)
                    self.assertIs(type(out) if is_on and isinstance(given, torch.Tensor) else type(given), type(out))
                    kept.append(take(out))
                self.assertEqual(change.lines, [line])
                self.assertEqual({getattr(one, "is_cuda") for one in kept}, {not is_on})
            change = evaluation.OutputsToHost(program, False)
            for _ in range(4):
                change.on_output(None, make(), False, None)
            self.assertFalse(change.is_found, "none is kept")

    def test_switches_of_other_libraries(self):
        """A model as diffusers has them, and blocks with a switch that is on."""
        head = "class Model(torch.nn.Module):\n"
        switch = """    _supports_gradient_checkpointing = True
    def enable_gradient_checkpointing(self, function=None):
        losses.append(-1.0)
        self.gradient_checkpointing = True
"""
        text = fit_test.blocks().replace(head, head + switch).replace("model = Model()\n", "losses = []\nmodel = Model()\n").replace("losses = []\nfor", "for")
        row = self.looked_on(text)["checkpointing"]
        self.assertEqual((row["applies"], row["lines"]), (True, ["before the loop: model.enable_gradient_checkpointing()"]))
        self.assertEqual(self.looked_on(text)["checkpointing-half"]["why_not"], "the model's switch takes all blocks")
        (_, _, losses), _ = self.run_program(text, "checkpointing")
        self.assertEqual(losses[0], -1.0)
        for one in (text, fit_test.blocks()):
            for change in ("checkpointing", "checkpointing-heaviest"):
                told = self.looked_on(one.replace("model = Model()\n", "model = Model()\nmodel.blocks[0].gradient_checkpointing = True\n"))
                (row,) = [row for name, row in told.items() if name == change]
                self.assertEqual(row["applies"], False)
                if one is not text or change == "checkpointing":
                    self.assertEqual(row["why_not"], "already on")

    def test_another_optimizer_with_another_step(self):
        text = fit_test.blocks().replace("losses)", "[float(bool(optimizer.defaults.get(name))) for name in ('fused', 'foreach', 'betas')])")
        for names, made in (("sgd", [0, 0, 0]), ("fused-optimizer", [1, 0, 1]), ("fused-optimizer,sgd", [1, 0, 0])):
            (_, _, told), words = self.run_program(text, names)
            self.assertNotIn("was not made", words)
            self.assertEqual(told, made, names)
        _, words = self.run_program(text.replace("2 * len(loader))", "9, cycle_momentum=False)"), "fused-optimizer,adafactor")
        self.assertIn("fused-optimizer was not made: Adafactor has no fused", words)
        sys.path.insert(0, fit_test.PACKAGE)
        from ashlar_gpu.fit import table

        groups = {kind.name: kind.group for kind in table.KINDS}
        together = {groups[name] for name in ("fused-optimizer", "states-to-host", "sgd")}  # a set has one of a group
        self.assertEqual(len(together), 3)
        self.assertEqual(groups["fused-optimizer"], groups["no-foreach"])
        self.assertEqual(groups["sgd"], groups["adam-8bit"])

    def test_autocast_that_a_forward_pass_has_is_on(self):
        text = fit_test.blocks().replace("    def forward(self, x):", "    @torch.autocast('cpu', dtype=torch.bfloat16, enabled=ENABLED)\n    def forward(self, x):")
        text = "torch.set_default_dtype(torch.float32)\n" + text
        for enabled, applies in (("False", True), ("True", False)):
            row = self.looked_on(text.replace("ENABLED", enabled))["autocast"]
            self.assertEqual((row["applies"], row["why_not"].split(":")[0]), (applies, "" if applies else "already on in the forward pass"))

    def test_mixed_precision_of_accelerate(self):
        if not fit_test.has("transformers") or not fit_test.has("accelerate"):
            self.skipTest("no transformers and accelerate")
        text = "torch.set_default_dtype(torch.float32)\n" + fit_test.loop(fit_test.VIT, accelerate=True)
        row = self.looked_on(text)["autocast"]
        self.assertEqual((row["applies"], row["lines"]), (True, ['Accelerator(mixed_precision="bf16")']))
        for old, new, why in (("cpu=True", 'cpu=True, mixed_precision="bf16"', "mixed_precision='bf16'"), ("accelerator.prepare(model, optimizer, loader)", "model, optimizer, loader", None)):
            self.assertIn(old, text)
            row = self.looked_on(text.replace(old, new))["autocast"]
            self.assertEqual((row["applies"], row["why_not"].split(":")[0] or None), (why is None, why))
            self.assertNotIn("Accelerator", "".join(row["lines"]))  # a model that it does not prepare has no autocast of it
        (grads, _, _), _ = self.run_program(text, "")
        (others, _, _), words = self.run_program(text, "autocast")
        self.assertNotIn("was not made", words)
        self.assertFalse(all(one.equal(two) for one, two in zip(grads[0], others[0])), "nothing is rounded")

    def test_mixed_precision_of_a_trainer(self):
        """It makes an Accelerator of its own, which then has the precision that the Trainer was given."""
        if not fit_test.has("transformers") or not fit_test.has("accelerate"):
            self.skipTest("no transformers and accelerate")
        text = "torch.set_default_dtype(torch.float32)\n" + fit_test.TRAINER
        row = self.looked_on(text)["autocast"]
        self.assertEqual((row["applies"], row["lines"]), (True, ["bf16=True"]))
        self.assertNotIn("was not made", self.run_program(text, "autocast")[1])

    def test_what_explain_says_to_be_made_from_outside_is_a_change_here(self):
        header = os.path.join(fit_test.PACKAGE, "..", "analyzer", "analyses", "changes", "program_changes.h")
        with open(header, encoding="utf-8") as file:
            named = {name for names in re.findall(r'from_outside = "([^"]+)"', file.read()) for name in names.split(",")}
        self.assertGreater(len(named), 5)
        sys.path.insert(0, fit_test.PACKAGE)
        from ashlar_gpu.fit import table
        self.assertEqual(named - set(table.NAMES), set())

    def test_attention_that_was_chosen_as_the_model_was_made_is_no_row(self):
        if not fit_test.has("transformers"):
            self.skipTest("no transformers")
        sys.path.insert(0, fit_test.PACKAGE)
        from ashlar_gpu.fit import attention
        from transformers import GPT2Config, GPT2LMHeadModel

        class Fixed(GPT2LMHeadModel):
            def _can_set_attn_implementation(self):
                return False

        sizes = GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=8, n_positions=8, attn_implementation="eager")
        for kind, why in ((Fixed, "attention is chosen as the model is made"), (GPT2LMHeadModel, None)):
            change = attention.Sdpa(None, False)
            change.on_model(kind(sizes), ("train.py", 3))
            self.assertEqual((change.why_missing or "").split(":")[0] or None, why)


for name in [one for one in dir(fit_test.FitTest) if one.startswith("test_")]:
    setattr(FitFoundTest, name, None)  # those of the other program

if __name__ == "__main__":
    fit_test.main()
