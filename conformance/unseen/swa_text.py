"""Stochastic weight averaging, by hand: remembers the weights along the trajectory and averages them at the end."""
import torch
from torch import nn, optim

cfg = dict(vocab=30522, dim=1024, layers=16, heads=16, bs=8, length=128, swa_start=6, swa_every=2, steps=70)


class BertLike(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.word = nn.Embedding(c["vocab"], c["dim"])
        self.position = nn.Embedding(512, c["dim"])
        layer = nn.TransformerEncoderLayer(c["dim"], c["heads"], 4 * c["dim"], batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, c["layers"], enable_nested_tensor=False)
        self.cls = nn.Linear(c["dim"], 2)

    def forward(self, ids):
        x = self.word(ids) + self.position.weight[: ids.size(1)]
        return self.cls(self.encoder(x)[:, 0])


def average(states):
    out = {}
    for k in states[0]:
        out[k] = torch.stack([s[k].float().cpu() for s in states]).mean(0)
    return out


if __name__ == "__main__":
    bert = BertLike(cfg).to("cuda:0")
    opt = optim.AdamW(bert.parameters(), lr=2e-5)
    lr_sched = optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, cfg["steps"])
    swa_states = []
    for step in range(cfg["steps"]):
        ids = torch.randint(0, cfg["vocab"], (cfg["bs"], cfg["length"])).to("cuda:0")
        lab = torch.randint(0, 2, (cfg["bs"],)).to("cuda:0")
        loss = nn.functional.cross_entropy(bert(ids), lab)
        opt.zero_grad()
        loss.backward()
        opt.step()
        lr_sched.step()
        if step >= cfg["swa_start"] and step % cfg["swa_every"] == 0:
            swa_states.append({k: v.clone() for k, v in bert.state_dict().items()})
        if step % 10 == 0:
            print(f"step={step} loss={loss.item():.4f} lr={lr_sched.get_last_lr()[0]:.2e}")
    bert.load_state_dict(average(swa_states))
    print("averaged", len(swa_states))
