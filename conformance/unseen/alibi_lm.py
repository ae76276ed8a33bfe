import functools
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

N_HEAD, D, LAYERS, VOCAB = 16, 512, 4, 8000


@functools.lru_cache(maxsize=None)
def alibi_mask(n_head, length, device):
    """additive causal mask with the ALiBi slopes, (heads, length, length)"""
    slopes = torch.tensor([2 ** (-8 * (i + 1) / n_head) for i in range(n_head)], device=device)
    pos = torch.arange(length, device=device)
    rel = (pos[None, :] - pos[:, None]).float()
    bias = slopes[:, None, None] * rel[None]
    return bias.masked_fill(rel > 0, float("-inf"))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.ff = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(B, T, 3, N_HEAD, D // N_HEAD).permute(2, 0, 3, 1, 4)
        mask = alibi_mask(N_HEAD, T, x.device)
        att = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(att.transpose(1, 2).reshape(B, T, D))
        return x + self.ff(self.n2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(D, VOCAB, bias=False)

    def forward(self, ids):
        h = self.emb(ids)
        for l in self.layers:
            h = l(h)
        return self.head(h)


random.seed(3)
model = LM().to("cuda")
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
n_tokens = 0
for step in range(150):
    # documents are not packed, each batch has its own length
    T = random.randint(400, 2400)
    ids = torch.randint(0, VOCAB, (2, T + 1), device="cuda")
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    n_tokens += 2 * T
    if step % 20 == 0:
        print(f"step {step} len {T} loss {loss.item():.3f} tokens {n_tokens}")
