import argparse
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertForSequenceClassification, get_scheduler


class Reviews(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(16, 128, (), generator=g))
            ids = torch.randint(5, 30000, (length,), generator=g)
            self.rows.append((ids, int(torch.randint(0, 2, (), generator=g))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return ids, label


def collate(rows):
    longest = max(len(ids) for ids, _ in rows)
    longest = -(-longest // 32) * 32
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, (row, _) in enumerate(rows):
        ids[i, :len(row)] = row
        mask[i, :len(row)] = 1
    return {'input_ids': ids, 'attention_mask': mask, 'labels': torch.tensor([label for _, label in rows])}


def evaluate(model, loader, accelerator):
    model.eval()
    correct = total = 0
    losses = []
    for batch in loader:
        with torch.no_grad():
            out = model(**batch)
        pred, ref = accelerator.gather_for_metrics((out.logits.argmax(-1), batch['labels']))
        correct += (pred == ref).sum().item()
        total += ref.numel()
        losses.append(out.loss.item())
    model.train()
    return correct / total, sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--batch', type=int, default=32)
    args = parser.parse_args()
    accelerator = Accelerator(mixed_precision='bf16', gradient_accumulation_steps=2)
    torch.manual_seed(0)
    model = DistilBertForSequenceClassification(DistilBertConfig(num_labels=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    train = DataLoader(Reviews(512, 1), batch_size=args.batch, shuffle=True, collate_fn=collate)
    dev = DataLoader(Reviews(256, 2), batch_size=64, collate_fn=collate)
    schedule = get_scheduler('linear', optimizer, 4, args.epochs * len(train))
    model, optimizer, train, dev, schedule = accelerator.prepare(model, optimizer, train, dev, schedule)
    best = None
    for epoch in range(args.epochs):
        running = 0.0
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            running += loss.item()
        acc, dev_loss = evaluate(model, dev, accelerator)
        accelerator.print(f'epoch {epoch}: train {running / len(train):.4f} dev {dev_loss:.4f} acc {acc:.4f}')
        if best is None or acc > best[0]:
            state = accelerator.unwrap_model(model).state_dict()
            best = acc, {k: v.detach().cpu().clone() for k, v in state.items()}
    accelerator.save(best[1], '/tmp/sst_best.pt')


if __name__ == '__main__':
    main()
