"""Intent classification with the Trainer, evaluation each epoch."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments, set_seed)


class Utterances(Dataset):
    def __init__(self, count, seed, intents=77):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(6, 48, (count,), generator=g)
        self.ids = torch.randint(1000, 30000, (count, 48), generator=g)
        self.intent = torch.randint(0, intents, (count,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        mask = (torch.arange(48) < self.lengths[i]).long()
        return {'input_ids': self.ids[i] * mask, 'attention_mask': mask, 'labels': self.intent[i]}


class Progress(TrainerCallback):
    def __init__(self):
        self.rows = []

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        self.rows.append((state.global_step, {k: round(v, 4) for k, v in metrics.items() if 'accuracy' in k}))


def accuracy(result):
    guess = np.argmax(result.predictions, axis=-1)
    return {'accuracy': float((guess == result.label_ids).mean())}


def main():
    set_seed(0)
    model = DistilBertForSequenceClassification(DistilBertConfig(num_labels=77, attn_implementation='sdpa'))
    progress = Progress()
    args = TrainingArguments(
        output_dir='/tmp/intent', per_device_train_batch_size=32, per_device_eval_batch_size=64,
        num_train_epochs=2, learning_rate=5e-5, eval_strategy='epoch', save_strategy='no', report_to='none',
        bf16=True, logging_steps=5, optim='adamw_torch_fused')
    trainer = Trainer(model=model, args=args, train_dataset=Utterances(32 * 12, 1), eval_dataset=Utterances(64 * 4, 2),
                      compute_metrics=accuracy, callbacks=[progress])
    trainer.train()
    for step, row in progress.rows:
        print(step, row)


if __name__ == '__main__':
    main()
