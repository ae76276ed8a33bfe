import os
import tempfile
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

os.environ["WANDB_DISABLED"] = "true"


class Recipes(Dataset):
    def __init__(self, n, length, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, vocab, (n, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i], "attention_mask": torch.ones_like(self.ids[i])}


def token_accuracy(prediction):
    guess, label = prediction.predictions, prediction.label_ids
    if guess.ndim == 3:
        guess = guess.argmax(-1)
    return {"token_accuracy": float((guess[:, :-1] == label[:, 1:]).mean())}


def main():
    config = GPT2Config(vocab_size=24_000, n_positions=256, n_embd=384, n_layer=4, n_head=6, use_cache=False)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=8,
            gradient_accumulation_steps=2,
            max_steps=10,
            learning_rate=3e-4,
            warmup_steps=2,
            eval_strategy="steps",
            eval_steps=5,
            logging_steps=5,
            save_strategy="no",
            report_to=[],
            dataloader_num_workers=0,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=args,
            train_dataset=Recipes(80, 192, config.vocab_size, 0),
            eval_dataset=Recipes(192, 256, config.vocab_size, 1),
            data_collator=default_data_collator,
            compute_metrics=token_accuracy,
        )
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
