"""Which tokens excite which neuron of a small language model? Builds an atlas while the model is fine-tuned."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CORPUS_BATCHES = 24
WATCHED = (1, 2)
VOCAB, WIDTH, HEADS, LENGTH = 4000, 768, 12, 512


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, -1))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class LanguageModel(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.out = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def watch(model, layers):
    atlas = {layer: [] for layer in layers}

    def follow(layer):
        def look(module, inputs, output):
            atlas[layer].append(output.detach().relu())
        return look

    handles = [model.blocks[layer].up.register_forward_hook(follow(layer)) for layer in layers]
    return atlas, handles


def peaks(atlas, top=20):
    found = {}
    for layer, seen in atlas.items():
        best = torch.stack([one.amax(dim=(0, 1)) if one.dim() == 3 else one for one in seen])
        found[layer] = best.topk(min(top, len(best)), dim=0).indices.cpu()
    return found


with torch.device("cuda"):
    model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
atlas, handles = watch(model, WATCHED)

for number in range(CORPUS_BATCHES):
    ids = torch.randint(0, VOCAB, (16, LENGTH), device="cuda")
    loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    if number % 2:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if number % 20 == 0:
        print(number, loss.item())

for handle in handles:
    handle.remove()
for layer, indices in peaks(atlas).items():
    print(layer, indices.shape)
