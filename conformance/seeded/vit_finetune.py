import torch
from torch.utils.data import DataLoader, Dataset
from transformers import ViTConfig, ViTForImageClassification, get_linear_schedule_with_warmup


class Leaves(Dataset):
    """Leaf photographs with one of 120 species."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {'pixel_values': torch.rand(3, 224, 224, generator=g),
                'labels': torch.randint(0, 120, (), generator=g)}


def main():
    torch.manual_seed(5)
    device = 'cuda'
    config = ViTConfig(num_labels=120, attn_implementation='sdpa')
    model = ViTForImageClassification(config).to(device)
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    plain = [p for n, p in model.named_parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{'params': decay, 'weight_decay': 0.05}, {'params': plain, 'weight_decay': 0.0}],
                                  lr=5e-5)
    steps = 12
    scheduler = get_linear_schedule_with_warmup(optimizer, 2, steps)
    loader = DataLoader(Leaves(80 * steps), batch_size=80, shuffle=True)

    model.train()
    for step, batch in enumerate(loader):
        batch = {k: v.to(device) for k, v in batch.items()}
        out = model(**batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 3 == 0:
            correct = (out.logits.argmax(-1) == batch['labels']).float().mean().item()
            print(f'{step}: loss {out.loss.item():.4f} accuracy {correct:.3f} lr {scheduler.get_last_lr()[0]:.1e}',
                  flush=True)


if __name__ == '__main__':
    main()
