import heapq
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_grad_enabled(False)


class DecLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.dk = h, d // h
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.ff1, self.ff2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, past):
        B, T, D = x.shape
        q = self.q(x).view(B, T, self.h, self.dk).transpose(1, 2)
        k, v = self.kv(x).view(B, T, 2, self.h, self.dk).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(a.transpose(1, 2).reshape(B, T, D))
        return x + self.ff2(F.gelu(self.ff1(x))), (k, v)


class Decoder(nn.Module):
    def __init__(self, vocab=16000, d=2048, h=16, n=4):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(DecLayer(d, h) for _ in range(n))
        self.out = nn.Linear(d, vocab, bias=False)

    def forward(self, ids, cache):
        x = self.e(ids)
        new = []
        for i, l in enumerate(self.layers):
            x, kv = l(x, None if cache is None else cache[i])
            new.append(kv)
        return self.out(x[:, -1]), new


class Hypothesis:
    def __init__(self, tokens, score, cache):
        self.tokens, self.score, self.cache = tokens, score, cache

    def __lt__(self, other):
        return self.score < other.score


class BeamSearcher:
    def __init__(self, model, beam=4, max_len=6):
        self.model, self.beam, self.max_len = model, beam, max_len
        self.n_best = {}

    def search(self, doc_id, prompt):
        logits, cache = self.model(prompt, None)
        beams = [Hypothesis([0], 0.0, cache)]
        done = []
        for t in range(self.max_len):
            cand = []
            for hyp in beams:
                tok = torch.tensor([[hyp.tokens[-1]]], device="cuda")
                logits, new_cache = self.model(tok, hyp.cache)
                lp, ix = logits.log_softmax(-1)[0].topk(self.beam)
                for s, w in zip(lp.tolist(), ix.tolist()):
                    cand.append(Hypothesis(hyp.tokens + [w], hyp.score + s, new_cache))
            beams = heapq.nlargest(self.beam, cand)
            if t % 3 == 2:       # a sentence end
                done.append(beams[-1])
        self.n_best[doc_id] = heapq.nlargest(self.beam, done + beams)
        return self.n_best[doc_id][0].tokens


with torch.device("cuda"):
    net = Decoder().half().eval()
searcher = BeamSearcher(net)
for doc in range(60):
    src = torch.randint(0, 16000, (1, 8192), device="cuda")
    summary = searcher.search(doc, src)
    if doc % 10 == 0:
        print("doc", doc, "summary length", len(summary))
rerank = {d: [h.score for h in hyps] for d, hyps in searcher.n_best.items()}
print(len(rerank), "documents reranked")
