"""Trains a transformer of random weights for some steps, as plainly as `ashlar estimate` describes a training run.

The model is made on the host from a transformers config and moved to the device (run with --skip-init its weights
take no host memory); ids and labels come from the host for each step; gradients
are clipped to a norm of 1; the loop's variable holds the loss alone. Ends with the line of JSON that tell.py prints.
"""

import argparse
import json

import torch
import transformers
from tell import tell
from transformers.optimization import Adafactor


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", help="a config.json of transformers")
    parser.add_argument("--architecture", required=True)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--target-seq", type=int, default=0, help="of an encoder-decoder; 0: as --seq")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16", "fp16", "bf16-pure"])
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--attention", default=None)
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


def make_model(asked):
    with open(asked.config) as file:
        described = json.load(file)
    described["architectures"] = [asked.architecture]
    config = transformers.AutoConfig.for_model(**described)
    if asked.attention:
        config._attn_implementation = asked.attention
    dtype = torch.bfloat16 if asked.precision == "bf16-pure" else torch.float32
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    model = getattr(transformers, asked.architecture)(config)
    torch.set_default_dtype(before)
    model.to("cuda")
    if asked.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
        model.enable_input_require_grads()
    return model.train()


def groups(model):
    """Matrices decay, biases and norms do not: two groups, as the Trainer of transformers makes them."""
    named = list(model.named_parameters())
    decaying = [p for name, p in named if p.dim() > 1 and "bias" not in name]
    plain = [p for name, p in named if p.dim() <= 1 or "bias" in name]
    return [{"params": decaying, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def make_optimizer(name, model):
    parameters = model.parameters() if name.startswith("sgd") else groups(model)
    if name == "adamw-8bit":
        import bitsandbytes

        return bitsandbytes.optim.AdamW8bit(parameters, weight_decay=0.01)
    makers = {
        "adamw": lambda: torch.optim.AdamW(parameters),
        "adamw-loop": lambda: torch.optim.AdamW(parameters, foreach=False),
        "adamw-fused": lambda: torch.optim.AdamW(parameters, fused=True),
        "adafactor": lambda: Adafactor(parameters, lr=0.001, scale_parameter=False, relative_step=False),
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.01),
        "sgd-momentum": lambda: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    }
    return makers[name]()


class Batches:
    """Of random tokens, ids and labels each a tensor of its own; what labels a head takes is told by its class."""

    def __init__(self, asked, vocabulary):
        self.asked, self.vocabulary = asked, vocabulary
        self.is_sequence = asked.architecture.endswith("ForSequenceClassification")
        self.is_encoder_decoder = asked.architecture.startswith("T5")

    def next(self):
        asked = self.asked
        ids = torch.randint(0, self.vocabulary, (asked.batch, asked.seq))
        if self.is_sequence:
            labels = torch.randint(0, 2, (asked.batch,))
        elif self.is_encoder_decoder:
            labels = torch.randint(0, self.vocabulary, (asked.batch, asked.target_seq or asked.seq))
        else:
            labels = torch.randint(0, self.vocabulary, (asked.batch, asked.seq))
        return {"input_ids": ids.to("cuda"), "labels": labels.to("cuda")}


def training_step(asked, model, scaler, batch):
    """Forward and backward of one batch; what it returns is all that is left of it, as in the Trainer."""
    autocast = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(asked.precision)
    with torch.autocast("cuda", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        loss = model(**batch).loss
    if asked.accumulation > 1:
        loss = loss / asked.accumulation
    scaler.scale(loss).backward()
    return loss.detach()


def train(asked, model, optimizer, batches):
    scaler = torch.amp.GradScaler("cuda", enabled=asked.precision == "fp16")
    for _ in range(asked.steps):
        for _ in range(asked.accumulation):
            batch = batches.next()
            loss = training_step(asked, model, scaler, batch)  # held until the next one is there
            del batch
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        model.zero_grad()
    return loss


def main():
    asked = arguments()
    torch.manual_seed(0)
    model = make_model(asked)
    optimizer = make_optimizer(asked.optimizer, model)
    train(asked, model, optimizer, Batches(asked, min(1000, model.config.vocab_size)))
    tell("estimated_step", transformers=transformers.__version__, parameters=sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
