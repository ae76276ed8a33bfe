"""Fine-tune a token classifier on long legal documents with the HF Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForTokenClassification, Trainer,
                          TrainerCallback, TrainingArguments, set_seed)

LABELS = [f"{p}-{n}" for n in range(160) for p in ("B", "I")] + ["O"]


class LegalDocs(Dataset):
    def __init__(self, n, length=512, vocab=20000, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, vocab, (n, length), generator=g)
        self.labels = torch.randint(0, len(LABELS), (n, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i],
                "attention_mask": torch.ones_like(self.ids[i]),
                "labels": self.labels[i]}


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=-1)
    keep = p.label_ids != -100
    correct = (preds == p.label_ids)[keep]
    entity = p.label_ids[keep] != LABELS.index("O")
    return {"accuracy": float(correct.mean()),
            "entity_recall": float(correct[entity].mean())}


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kw):
        if logs and "loss" in logs:
            print(f"step {state.global_step}: {logs['loss']:.4f}")


def main():
    set_seed(13)
    config = BertConfig(
        vocab_size=20000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
        intermediate_size=2048, num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)), label2id={l: i for i, l in enumerate(LABELS)})
    model = BertForTokenClassification(config)

    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=32,
        max_steps=8,
        learning_rate=3e-5,
        warmup_steps=2,
        weight_decay=0.01,
        logging_steps=4,
        save_strategy="no",
        report_to=[],
        dataloader_num_workers=0,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=LegalDocs(64, seed=1),
        eval_dataset=LegalDocs(1800, seed=2),
        compute_metrics=compute_metrics,
        callbacks=[PrintLosses()],
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()
