import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class TinyGPT(nn.Module):
    def __init__(self, vocab=2048, dim=512, depth=4, ctx=256):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, ctx, dim))
        layer = nn.TransformerEncoderLayer(dim, 8, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1), device=ids.device)
        return self.out(self.blocks(x, mask=mask, is_causal=True))


history = {"train_loss": [], "grad_norm": []}
model = TinyGPT().cuda()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
accum = 8

for step in range(3):
    running = torch.zeros((), device="cuda")
    for micro in range(accum):
        ids = torch.randint(0, 2048, (8, 257)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten()) / accum
        loss.backward()
        running += loss.detach()
    history["grad_norm"].append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    opt.step()
    opt.zero_grad()
    ema.update_parameters(model)
    history["train_loss"].append(running)
    print("step", step)
