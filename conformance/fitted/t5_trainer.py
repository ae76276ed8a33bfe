"""T5 by transformers' Trainer: an encoder and a decoder."""

import tempfile

import torch
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments

torch.manual_seed(0)
model = T5ForConditionalGeneration(T5Config(d_model=384, d_ff=1536, num_layers=6, num_heads=6, vocab_size=8192, decoder_start_token_id=0))
data = []
for _ in range(64):
    ids = torch.randint(0, 8192, (256,))
    data.append({"input_ids": ids, "labels": ids[:128]})
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    per_device_train_batch_size=16,
    num_train_epochs=1,
    report_to=[],
    save_strategy="no",
)
Trainer(model, arguments, train_dataset=data).train()
