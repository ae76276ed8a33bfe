"""Batched decoding with a preallocated key/value cache."""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, HEADS, LAYERS, MAX_LEN, BATCH, VOCAB = 2560, 20, 20, 2048, 64, 32000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.up, self.down = nn.Linear(D, 4 * D, bias=False), nn.Linear(4 * D, D, bias=False)
        shape = (BATCH, HEADS, MAX_LEN, D // HEADS)
        self.register_buffer("k", torch.zeros(shape), persistent=False)
        self.register_buffer("v", torch.zeros(shape), persistent=False)

    def forward(self, x, pos):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        self.k[:, :, pos:pos + T] = k
        self.v[:, :, pos:pos + T] = v
        end = pos + T
        y = F.scaled_dot_product_attention(q, self.k[:, :, :end], self.v[:, :, :end], is_causal=T > 1)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, D))
        return x + self.down(F.silu(self.up(x)))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(D, VOCAB, bias=False)

    def forward(self, ids, pos):
        x = self.emb(ids)
        for l in self.layers:
            x = l(x, pos)
        return self.head(x[:, -1])


@torch.inference_mode()
def generate(lm, prompt, n):
    pos = prompt.size(1)
    tok = lm(prompt, 0).argmax(-1, keepdim=True)
    out = [tok.cpu()]
    for _ in range(n - 1):
        tok = lm(tok, pos).argmax(-1, keepdim=True)
        out.append(tok.cpu())
        pos += 1
    return torch.cat(out, 1)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        lm = LM().eval()
    for request in range(2):
        prompt = torch.randint(0, VOCAB, (BATCH, 128), device="cuda")
        print("request", request, tuple(generate(lm, prompt, 24).shape))
