import torch
import torch.nn as nn
import torch.nn.functional as F

# masked residue prediction on long chains, bf16 weights
residues, length, chains = 25, 2048, 6
width, heads, depth = 512, 8, 5
dtype = torch.bfloat16


class ChainAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.merge = (nn.Linear(width, width) for _ in range(4))

    def heads_of(self, x):
        return x.view(x.shape[0], -1, heads, width // heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads_of(self.query(x)), self.heads_of(self.key(x)), self.heads_of(self.value(x))
        affinity = q @ k.transpose(-1, -2) * (width // heads) ** -0.5
        y = F.dropout(affinity.softmax(-1), 0.0, self.training) @ v
        return self.merge(y.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.n1, self.n2 = ChainAttention(), nn.LayerNorm(width), nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.n1(x))
        return x + self.ff(self.n2(x))


class ProteinEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.residue = nn.Embedding(residues, width)
        self.layers = nn.Sequential(*[EncoderLayer() for _ in range(depth)])
        self.guess = nn.Linear(width, residues)

    def forward(self, chain):
        return self.guess(self.layers(self.residue(chain)))


encoder = ProteinEncoder().to("cuda", dtype)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-4, weight_decay=0.01)
losses = []
for step in range(4):
    chain = torch.randint(0, residues - 1, (chains, length), device="cuda")
    hidden = torch.rand(chains, length, device="cuda") < 0.15
    logits = encoder(torch.where(hidden, residues - 1, chain))
    per_residue = F.cross_entropy(logits.float().flatten(0, 1), chain.flatten(), reduction="none")
    loss = (per_residue * hidden.flatten()).sum() / (0.15 * chains * length)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("first", losses[0], "last", losses[-1])
