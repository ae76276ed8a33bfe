"""transformers.Trainer over random tokens: what the programs of one model family share."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class RandomTokens(Dataset):
    """Seeded; a sample is its own label."""

    def __init__(self, samples, length, vocabulary, label="labels"):
        generator = torch.Generator().manual_seed(7)
        self.tokens = torch.randint(0, vocabulary, (samples, length), generator=generator)
        self.label = label

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], self.label: self.tokens[index]}


def train(model, data, steps, batch, **settings):
    """The number of steps that were done."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=batch,
            bf16=True,
            report_to=[],
            save_strategy="no",
            logging_steps=steps,
            disable_tqdm=True,
            **settings
        )
        return Trainer(model=model, args=arguments, train_dataset=data).train().global_step
