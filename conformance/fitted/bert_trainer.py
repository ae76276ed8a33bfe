"""BERT by transformers' Trainer, whose batch of 32 x 256 is too large for 3 GiB."""

import tempfile

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments

torch.manual_seed(0)
model = BertForMaskedLM(BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8, intermediate_size=2048, vocab_size=8192))
data = []
for _ in range(128):
    ids = torch.randint(0, 8192, (256,))
    data.append({"input_ids": ids, "labels": ids})
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=32,
    num_train_epochs=1,
    report_to=[],
    save_strategy="no",
)
Trainer(model, arguments, train_dataset=data).train()
