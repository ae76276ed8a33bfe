import argparse

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator


class BlockDataset(Dataset):
    def __init__(self, n_blocks, block_size, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.data = torch.randint(0, vocab, (n_blocks, block_size), generator=g)

    def __len__(self):
        return self.data.size(0)

    def __getitem__(self, i):
        ids = self.data[i]
        return {'input_ids': ids, 'attention_mask': torch.ones_like(ids), 'labels': ids.clone()}


def compute_metrics(eval_pred):
    preds, labels = eval_pred
    if preds.ndim == 3:
        preds = preds.argmax(-1)
    preds, labels = preds[:, :-1], labels[:, 1:]
    return {'token_accuracy': float(np.mean(preds == labels))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--block_size', type=int, default=256)
    parser.add_argument('--n_layer', type=int, default=6)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--eval_blocks', type=int, default=160)
    args = parser.parse_args()

    config = GPT2Config(vocab_size=32000, n_positions=args.block_size, n_embd=512, n_layer=args.n_layer, n_head=8)
    model = GPT2LMHeadModel(config)
    print(f'{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters')

    training_args = TrainingArguments(
        output_dir='/tmp/clm_finetune_out',
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        learning_rate=3e-4,
        warmup_steps=2,
        max_steps=args.steps,
        logging_steps=4,
        eval_strategy='steps',
        eval_steps=args.steps,
        save_strategy='no',
        report_to=[],
        disable_tqdm=True,
        dataloader_num_workers=0,
    )

    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=BlockDataset(400, args.block_size, config.vocab_size, seed=1),
        eval_dataset=BlockDataset(args.eval_blocks, args.block_size, config.vocab_size, seed=2),
        data_collator=default_data_collator,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == '__main__':
    main()
