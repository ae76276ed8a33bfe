"""Full fine-tune of a 1 B class encoder on clinical notes, gradients are accumulated over micro-batches."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Notes(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((128,), index % 8000), torch.tensor(index % 2)


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))


class NoteEncoder(nn.Module):
    def __init__(self, width=2048, depth=28):
        super().__init__()
        self.embed = nn.Embedding(8000, width)
        self.experts = nn.Sequential(*[Expert(width) for _ in range(depth)])
        self.verdict = nn.Linear(width, 2)

    def forward(self, notes):
        return self.verdict(self.experts(self.embed(notes)).mean(1))


def main():
    accelerator = Accelerator(gradient_accumulation_steps=4)
    with torch.device("cuda"):
        model = NoteEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    loader = DataLoader(Notes(64), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    seen = 0
    for notes, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(notes), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        seen += len(labels)
        accelerator.print(seen, loss.item())


if __name__ == "__main__":
    main()
