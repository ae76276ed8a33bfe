"""ColBERT style index: one vector per token. Documents are sorted by length, so that hardly anything is padded."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=170)
parser.add_argument("--bs", type=int, default=32)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--dim", type=int, default=640)
args = parser.parse_args()


class TokenEncoder(nn.Module):
    def __init__(self, hidden, dim):
        super().__init__()
        self.emb = nn.Embedding(30522, hidden)
        self.ff = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, hidden), nn.ReLU(inplace=True))
        self.proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, ids):
        return self.proj(self.ff(self.emb(ids)))


def sorted_batches(n, bs):
    for i in range(n):
        length = 512 + 4 * i
        yield torch.randint(0, 30522, (bs, length))


@torch.inference_mode()
def build_index():
    enc = TokenEncoder(args.hidden, args.dim).cuda().eval()
    index = []
    for i, ids in enumerate(sorted_batches(args.batches, args.bs)):
        vecs = enc(ids.cuda())
        index.append(vecs)          # must stay on the gpu, the search runs there
        if i % 20 == 0:
            print(f"batch {i} length {ids.size(1)}", flush=True)
    return enc, index


@torch.inference_mode()
def search(enc, index, question, k=5):
    q = enc(question.cuda())[0]
    best = []
    for b, vecs in enumerate(index):
        score = (vecs.flatten(0, 1) @ q.t()).view(vecs.size(0), vecs.size(1), -1).amax(1).sum(-1)
        best.append((score.max().item(), b))
    return sorted(best)[-k:]


if __name__ == "__main__":
    enc, index = build_index()
    print("index of", sum(v.nbytes for v in index) >> 20, "MiB")
    print(search(enc, index, torch.randint(0, 30522, (1, 24))))
