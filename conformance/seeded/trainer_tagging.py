"""Token classification with transformers' Trainer, on synthetic notes; F1 of the evaluation at each epoch's end."""
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainerCallback, TrainingArguments

os.environ.setdefault('WANDB_DISABLED', 'true')
LABELS = 3000


class Notes(Dataset):
    """Clinical notes with one code of a coding system for each token."""

    def __init__(self, n, length=256, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 8000, (n, length), generator=gen)
        self.codes = torch.randint(LABELS, (n, length), generator=gen)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {'input_ids': self.ids[i], 'attention_mask': torch.ones_like(self.ids[i]), 'labels': self.codes[i]}


class KeepBest(TrainerCallback):
    """Remembers the best score of all evaluations."""

    def __init__(self):
        self.best = None
        self.history = []

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        score = metrics.get('eval_micro')
        self.history.append((state.epoch, score))
        if self.best is None or score > self.best:
            self.best = score


def micro(prediction):
    codes = np.argmax(prediction.predictions, -1)
    return {'micro': float((codes == prediction.label_ids).mean())}


def build():
    config = BertConfig(
        vocab_size=8000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048,
        num_labels=LABELS, max_position_embeddings=256)
    return BertForTokenClassification(config)


def main():
    torch.manual_seed(0)
    out = tempfile.mkdtemp()
    args = TrainingArguments(
        output_dir=out,
        num_train_epochs=1,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        eval_strategy='epoch',
        save_strategy='no',
        logging_steps=10,
        learning_rate=5e-5,
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
    )
    best = KeepBest()
    trainer = Trainer(
        model=build(),
        args=args,
        train_dataset=Notes(160),
        eval_dataset=Notes(448, seed=1),
        compute_metrics=micro,
        callbacks=[best],
    )
    trainer.train()
    print('best micro', best.best, 'of', len(best.history))


if __name__ == '__main__':
    main()
