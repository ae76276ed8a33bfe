"""Low-rank adapters on a GPT-2 for one author's style."""
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D


class LowRank(nn.Module):
    def __init__(self, base: Conv1D, rank: int = 8, alpha: float = 16.0):
        super().__init__()
        self.base = base
        nx, nf = base.weight.shape
        self.down = nn.Parameter(torch.randn(nx, rank, device=base.weight.device) * 0.01)
        self.up = nn.Parameter(torch.zeros(rank, nf, device=base.weight.device))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + (x @ self.down @ self.up) * self.scale


def inject(model, rank):
    adapters = []
    for block in model.transformer.h:
        for owner, name in ((block.attn, "c_attn"), (block.mlp, "c_fc")):
            wrapped = LowRank(getattr(owner, name), rank)
            setattr(owner, name, wrapped)
            adapters += [wrapped.down, wrapped.up]
    return adapters


def chapters(n, batch, length, vocab):
    for _ in range(n):
        yield torch.randint(0, vocab, (batch, length), device="cuda")


config = GPT2Config(n_embd=1280, n_layer=24, n_head=20, n_positions=512, vocab_size=32000,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
with torch.device("cuda"):
    model = GPT2LMHeadModel(config)
model.train()

adapters = inject(model, rank=16)
optimizer = torch.optim.AdamW(adapters, lr=2e-4, weight_decay=0.0)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
print(f"training {sum(p.numel() for p in adapters) / 1e6:.1f} M of "
      f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M")

losses = []
for step, ids in enumerate(chapters(12, 1, 256, config.vocab_size)):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(adapters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    warmup.step()
    losses.append(loss.item())
    if step % 4 == 3:
        print(step + 1, sum(losses[-4:]) / 4)

state = {n: p.detach().cpu() for n, p in model.named_parameters() if n.endswith((".down", ".up"))}
print("adapter tensors", len(state))
