"""Which layer of an audio model knows the speaker's accent? Linear probes on every layer, features by hooks."""
from contextlib import contextmanager
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import Wav2Vec2Config, Wav2Vec2Model

device = "cuda"
torch.manual_seed(2)
ACCENTS = 12


@contextmanager
def watching(layers):
    """The mean over time of what each layer gives, for the batch under way."""
    found = {}

    def note(k, module, args, out):
        hidden = out[0] if isinstance(out, tuple) else out
        found[k] = hidden.mean(1)

    handles = [layer.register_forward_hook(partial(note, k)) for k, layer in enumerate(layers)]
    try:
        yield found
    finally:
        for h in handles:
            h.remove()
        found.clear()


class Probes:
    def __init__(self, count, dim):
        self.heads = nn.ModuleList(nn.Linear(dim, ACCENTS) for _ in range(count)).to(device)
        self.opt = torch.optim.SGD(self.heads.parameters(), 0.1, momentum=0.9)

    def train(self, found, y):
        losses = [F.cross_entropy(head(found[k]), y) for k, head in enumerate(self.heads)]
        self.opt.zero_grad()
        sum(losses).backward()
        self.opt.step()
        return torch.stack([l.detach() for l in losses]).cpu()

    @torch.no_grad()
    def right(self, found, y):
        return torch.stack([(head(found[k]).argmax(1) == y).sum() for k, head in enumerate(self.heads)]).cpu()


g = torch.Generator().manual_seed(4)
waves = TensorDataset(torch.randn(144, 16000, generator=g), torch.randint(0, ACCENTS, (144,), generator=g))
train, test = torch.utils.data.random_split(waves, [96, 48], generator=g)
model = Wav2Vec2Model(Wav2Vec2Config(attn_implementation="sdpa")).to(device).eval()
model.requires_grad_(False)
layers = model.encoder.layers
probes = Probes(len(layers), model.config.hidden_size)

for epoch in range(2):
    seen = torch.zeros(len(layers))
    for x, y in DataLoader(train, 16, shuffle=True):
        with watching(layers) as found:
            with torch.no_grad():
                model(x.to(device))
            seen += probes.train(found, y.to(device))
    hits = torch.zeros(len(layers), dtype=torch.long)
    for x, y in DataLoader(test, 16):
        with watching(layers) as found, torch.no_grad():
            model(x.to(device))
            hits += probes.right(found, y.to(device))
    best = int(hits.argmax())
    print(f"epoch {epoch} loss {seen.mean().item():.3f}, best layer {best} with {hits[best].item()} of {len(test)}")
