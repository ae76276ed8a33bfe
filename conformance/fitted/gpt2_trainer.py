"""GPT-2 by transformers' Trainer, one sequence of 1,024 tokens at a time: no batch to halve."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_head=8, n_embd=512, vocab_size=8192, n_positions=2048))
data = []
for _ in range(4):
    ids = torch.randint(0, 8192, (2048,))
    data.append({"input_ids": ids, "labels": ids})
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=1,
    num_train_epochs=1,
    report_to=[],
    save_strategy="no",
)
Trainer(model, arguments, train_dataset=data).train()
