"""Fine-tune a small BERT on token classification with the transformers Trainer."""
import os

os.environ["WANDB_DISABLED"] = "true"
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

LABELS = 9
LENGTH = 256
EVAL_SENTENCES = 1600


class Sentences(Dataset):
    def __init__(self, count, length, vocab):
        self.count, self.length, self.vocab = count, length, vocab

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        start = (index * 31) % (self.vocab - self.length)
        ids = torch.arange(start, start + self.length)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids % LABELS}


def token_accuracy(prediction):
    logits, labels = prediction.predictions, prediction.label_ids
    if isinstance(logits, tuple):
        logits = logits[0]
    return {"accuracy": float((np.argmax(logits[..., :LABELS], -1) == labels).mean())}


def build_model():
    config = BertConfig(vocab_size=8000, hidden_size=512, num_hidden_layers=5, num_attention_heads=8,
                        intermediate_size=2048, num_labels=LABELS, output_hidden_states=True)
    return BertForTokenClassification(config)


def main():
    model = build_model()
    vocab = model.config.vocab_size
    args = TrainingArguments(
        output_dir="/tmp/ner_out",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        max_steps=4,
        learning_rate=5e-5,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Sentences(400, LENGTH, vocab),
        eval_dataset=Sentences(EVAL_SENTENCES, LENGTH, vocab),
        compute_metrics=token_accuracy,
    )
    trainer.train()
    scores = trainer.evaluate()
    print({key: round(value, 4) for key, value in scores.items()})


if __name__ == "__main__":
    main()
