import torch
import torch.nn as nn
import torch.nn.functional as F


class DocEncoder(nn.Module):
    def __init__(self, vocab=30522, dim=512, depth=6, heads=8, out=256, length=180):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(length, dim))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(depth))
        self.proj = nn.Linear(dim, out, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.size(1)]
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.proj(x), dim=-1)


def read_corpus(total, batch, length=180, vocab=30522):
    """Yields blocks of token ids as a reader of a memory map would."""
    for start in range(0, total, batch):
        yield torch.randint(0, vocab, (min(batch, total - start), length), device="cuda")


class LateInteractionIndex:
    def __init__(self, encoder):
        self.encoder = encoder
        self.vectors = None

    @torch.no_grad()
    def add(self, ids):
        vectors = self.encoder(ids)
        if self.vectors is None:
            self.vectors = vectors
        else:
            self.vectors = torch.cat([self.vectors, vectors])

    @torch.no_grad()
    def search(self, query_ids, k=10, block=2048):
        q = self.encoder(query_ids)
        best = []
        for start in range(0, len(self.vectors), block):
            docs = self.vectors[start:start + block]
            best.append(torch.einsum("qid,njd->qnij", q, docs).amax(-1).sum(-1))
        return torch.cat(best, 1).topk(k, dim=1).indices

    def __len__(self):
        return 0 if self.vectors is None else len(self.vectors)


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    encoder = DocEncoder().cuda().eval()
    index = LateInteractionIndex(encoder)
    for number, ids in enumerate(read_corpus(total=400_000, batch=1024)):
        index.add(ids)
        if number % 5 == 0:
            print(f"{len(index):,} documents", flush=True)
    queries = torch.randint(0, 30522, (8, 32), device="cuda")
    print(index.search(queries).shape)


if __name__ == "__main__":
    main()
