import argparse
import atexit
import os
import shutil
import tempfile
import torch
import torch.nn as nn


class GPTish(nn.Module):
    def __init__(self, vocab=16384, d=1024, n=8, ctx=512):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        layer = nn.TransformerEncoderLayer(d, 16, 4 * d, batch_first=True, norm_first=True, dropout=0.0)
        self.h = nn.TransformerEncoder(layer, n, enable_nested_tensor=False)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        T = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(T, device=ids.device)
        x = self.tok(ids) + self.pos(torch.arange(T, device=ids.device))
        return self.lm_head(self.h(x, mask=mask, is_causal=True))


def fake_pretraining(path):
    """stands for the first job of the chain: writes model and Adam state"""
    m = GPTish()
    state = {i: {"step": torch.tensor(1000.0), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
             for i, p in enumerate(m.parameters())}
    groups = torch.optim.AdamW(m.parameters()).state_dict()["param_groups"]
    ema = {k: v.clone() for k, v in m.state_dict().items()}
    torch.save({"model": m.state_dict(), "ema": ema, "optimizer": {"state": state, "param_groups": groups}, "step": 1000}, path)


def main(args):
    tmp = tempfile.mkdtemp(prefix="resume_lm_")
    atexit.register(shutil.rmtree, tmp, True)
    path = os.path.join(tmp, "last.ckpt")
    fake_pretraining(path)

    ckpt = torch.load(path, map_location=args.device)
    model = GPTish().to(args.device)
    model.load_state_dict(ckpt["model"])
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    opt.load_state_dict(ckpt["optimizer"])
    start = ckpt["step"]
    print("resumed at step", start)

    for step in range(start, start + args.steps):
        ids = torch.randint(0, 16384, (args.bs, 513), device=args.device)
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(step, "loss", loss.item())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--bs", type=int, default=34)
    ap.add_argument("--steps", type=int, default=12)
    ap.add_argument("--lr", type=float, default=1e-4)
    ap.add_argument("--device", default="cuda")
    main(ap.parse_args())
