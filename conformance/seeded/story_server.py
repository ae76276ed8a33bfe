"""Generate stories for a queue of prompts with a static cache."""
import collections
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, k_room, v_room, at):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k_room[:b, :, at:at + t], v_room[:b, :, at:at + t] = k, v
        y = F.scaled_dot_product_attention(q, k_room[:b, :, :at + t], v_room[:b, :, :at + t], is_causal=t > 1)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, w))
        return x + self.ff(self.n2(x))


class Storyteller(nn.Module):
    def __init__(self, vocab=20_000, width=1024, depth=16, heads=16, room=640, batch=8):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(room, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        for name in ('keys', 'values'):
            self.register_buffer(name, torch.zeros(depth, batch, heads, room, width // heads), persistent=False)

    def forward(self, ids, at):
        x = self.embed(ids) + self.pos(torch.arange(at, at + ids.shape[1], device=ids.device))
        for i, block in enumerate(self.blocks):
            x = block(x, self.keys[i], self.values[i], at)
        return self.norm(x[:, -1]) @ self.embed.weight.T


@torch.inference_mode()
def tell(model, prompts, tokens):
    ids = prompts.to(model.embed.weight.device)
    out, at = [], 0
    for _ in range(tokens):
        logits = model(ids, at)
        at += ids.shape[1]
        ids = logits.float().div(0.8).softmax(-1).topk(40).indices[:, :1]
        out.append(ids)
    return torch.cat(out, 1).cpu()


def main():
    torch.manual_seed(0)
    model = Storyteller().half().to('cuda').eval()
    queue = collections.deque(torch.randint(0, 20_000, (8, n)) for n in (64, 200, 128, 300, 90))
    done = 0
    while queue:
        prompts = queue.popleft()
        started = time.perf_counter()
        stories = tell(model, prompts, tokens=48)
        done += len(stories)
        print(f'{done} stories, prompt {prompts.shape[1]}, {time.perf_counter() - started:.1f} s', flush=True)


if __name__ == '__main__':
    main()
