"""BERT-base by transformers' Trainer: it fails with 5 GiB."""

import torch
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(0, 30522, (384,))
        return {"input_ids": ids, "labels": ids}


torch.manual_seed(0)
arguments = TrainingArguments(
    "out",
    per_device_train_batch_size=16,
    max_steps=4,
    report_to=[],
    save_strategy="no",
)
Trainer(BertForMaskedLM(BertConfig()), arguments, train_dataset=Tokens()).train()
