"""Masked-LM pretraining of a small BERT with the Trainer; accuracy on the masked places after training."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

VOCAB = 8192
SEQ = 128


class Sentences(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(10, VOCAB, (count, SEQ), generator=g)
        self.hidden = torch.rand(count, SEQ, generator=g) < 0.15

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i].clone()
        labels = torch.where(self.hidden[i], ids, torch.tensor(-100))
        ids[self.hidden[i]] = 4
        return {'input_ids': ids, 'attention_mask': torch.ones_like(ids), 'labels': labels}


def masked_accuracy(result):
    logits, labels = result.predictions, result.label_ids
    wanted = labels != -100
    guess = logits.argmax(-1)
    return {'masked_accuracy': float(np.mean(guess[wanted] == labels[wanted]))}


def main():
    set_seed(11)
    config = BertConfig(vocab_size=VOCAB, hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
                        intermediate_size=1536, max_position_embeddings=SEQ)
    model = BertForMaskedLM(config)
    args = TrainingArguments(
        output_dir='/tmp/mlm',
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        max_steps=10,
        learning_rate=3e-4,
        warmup_steps=2,
        logging_steps=5,
        save_strategy='no',
        report_to='none',
        dataloader_num_workers=0,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Sentences(16 * 20, seed=1),
        eval_dataset=Sentences(32 * 11, seed=2),
        compute_metrics=masked_accuracy,
    )
    trainer.train()
    metrics = trainer.evaluate()
    for name in sorted(metrics):
        print(name, metrics[name])


if __name__ == '__main__':
    main()
