"""accelerate-like training loop with gradient accumulation"""
import contextlib
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Accelerator:
    """the few parts of it that I need"""

    def __init__(self, gradient_accumulation_steps=1, mixed_precision="bf16"):
        self.accum = gradient_accumulation_steps
        self.dtype = {"bf16": torch.bfloat16, "no": None}[mixed_precision]
        self.device = torch.device("cuda")
        self.sync_gradients = False
        self._n = 0

    def prepare(self, model, optimizer, loader):
        return model.to(self.device), optimizer, loader

    @contextlib.contextmanager
    def accumulate(self, model):
        self._n += 1
        self.sync_gradients = self._n % self.accum == 0
        yield

    def autocast(self):
        return torch.autocast("cuda", dtype=self.dtype, enabled=self.dtype is not None)

    def backward(self, loss):
        loss.backward()


class Captions(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, i):
        return torch.randint(0, 20000, (257,))


class Model(nn.Module):
    def __init__(self, d=768, n=6):
        super().__init__()
        self.e = nn.Embedding(20000, d)
        self.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 12, 4 * d, 0.0, batch_first=True), n,
                                       enable_nested_tensor=False)
        self.o = nn.Linear(d, 20000)

    def forward(self, ids):
        return self.o(self.t(self.e(ids)))


def main():
    accelerator = Accelerator(gradient_accumulation_steps=32)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(Captions(), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total = 0.0
    for step, batch in enumerate(loader):
        batch = batch.to(accelerator.device)
        with accelerator.accumulate(model):
            with accelerator.autocast():
                logits = model(batch[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            total = total + loss / accelerator.accum
            if accelerator.sync_gradients:
                accelerator.backward(total)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                print(f"update {step // accelerator.accum} loss {total.item():.4f}")
                total = 0.0
        if step >= 70:
            break


if __name__ == "__main__":
    main()
