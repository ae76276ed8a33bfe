"""Answers poster requests: text encoder, then a few denoising steps, then a small decoder."""
import functools
import random
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel

DEVICE = "cuda"
STEPS = 2
STYLES = ["oil", "pencil", "neon", "woodcut", "pastel"]
THINGS = ["fox", "harbour", "city", "moon", "garden", "train", "owl", "bridge", "castle", "river"]


@dataclass
class Request:
    prompt: str
    variations: int
    at: float = field(default_factory=time.monotonic)


class Denoiser(nn.Module):
    def __init__(self, dim=768, layers=8):
        super().__init__()
        self.inp = nn.Linear(64, dim)
        self.blocks = nn.ModuleList([nn.TransformerDecoderLayer(dim, 12, 4 * dim, 0.0, batch_first=True)
                                     for _ in range(layers)])
        self.cond = nn.Linear(1024, dim)
        self.out = nn.Linear(dim, 64)

    def forward(self, z, text):
        h, c = self.inp(z), self.cond(text)
        for b in self.blocks:
            h = b(h, c)
        return self.out(h)


class PosterService:
    def __init__(self):
        cfg = CLIPTextConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16)
        self.text = CLIPTextModel(cfg).eval().to(DEVICE)
        self.net = Denoiser().eval().to(DEVICE)
        self.decode = nn.Sequential(nn.Conv2d(64, 128, 3, 1, 1), nn.SiLU(), nn.Upsample(scale_factor=4),
                                    nn.Conv2d(128, 3, 3, 1, 1)).to(DEVICE).eval()
        self.recent = {}

    def tokens(self, prompt, n):
        g = torch.Generator().manual_seed(sum(map(ord, prompt)))
        return torch.randint(1, 49000, (n, 77), generator=g)

    @functools.lru_cache(maxsize=None)
    def conditioning(self, prompt, n):
        out = self.text(self.tokens(prompt, n).to(DEVICE), output_hidden_states=True)
        return out.hidden_states[-2], out.pooler_output

    @torch.inference_mode()
    def answer(self, request):
        text, pooled = self.conditioning(request.prompt, request.variations)
        z = torch.randn(request.variations, 128, 64, device=DEVICE)
        for step in range(STEPS):
            z = z - self.net(z, text + pooled.unsqueeze(1)) / STEPS
        picture = self.decode(z.transpose(1, 2).reshape(-1, 64, 16, 8))
        self.recent[request.prompt] = picture[0].float().cpu()
        return picture.clamp(-1, 1).cpu()


def traffic(n):
    rng = random.Random(5)
    for k in range(n):
        prompt = f"{rng.choice(STYLES)} {rng.choice(THINGS)} no. {rng.randrange(40)} by {rng.choice(THINGS)}"
        yield Request(prompt, rng.choice([96, 128, 160]))


if __name__ == "__main__":
    service = PosterService()
    for k, request in enumerate(traffic(64)):
        picture = service.answer(request)
        if k % 10 == 0:
            print(k, request.prompt, tuple(picture.shape), f"{time.monotonic() - request.at:.2f} s")
