"""Speech model; batches with broken transcripts are skipped and reported at the end."""
import random
import traceback
import torch
import torch.nn as nn


class BadBatch(ValueError):
    pass


class SpeechNet(nn.Module):
    def __init__(self, mel=80, d=512, tokens=128):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv1d(mel, d, 5, 2, 2), nn.GELU(), nn.Conv1d(d, d, 5, 2, 2), nn.GELU())
        self.ctx = nn.ModuleList([nn.Sequential(nn.Conv1d(d, d, 9, padding=4), nn.GELU()) for _ in range(8)])
        self.out = nn.Conv1d(d, tokens, 1)

    def forward(self, x):
        h = self.sub(x)
        for c in self.ctx:
            h = h + c(h)
        return self.out(h)


def get_batch(i, rng):
    feats = torch.randn(32, 80, 1600)
    lens = [rng.randint(50, 120) for _ in range(32)]
    if rng.random() < 0.5:
        lens[rng.randrange(32)] = 450        # transcript longer than the audio
    return feats, lens


def compute_loss(model, feats, lens):
    x = feats.to("cuda")
    logits = model(x)
    log_probs = logits.log_softmax(1)
    frames = log_probs.size(2)
    if max(lens) > frames:
        raise BadBatch(f"transcript of {max(lens)} tokens for {frames} frames")
    target = torch.randint(1, 128, (x.size(0), frames), device="cuda")
    return nn.functional.nll_loss(log_probs, target)


def main():
    rng = random.Random(5)
    model = SpeechNet().cuda()
    opt = torch.optim.Adam(model.parameters(), 1e-4)
    skipped = []
    for i in range(110):
        feats, lens = get_batch(i, rng)
        try:
            loss = compute_loss(model, feats, lens)
        except BadBatch as err:
            skipped.append((i, err))
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print("batch", i, "loss", loss.item(), "skipped", len(skipped))
    print(len(skipped), "batches were skipped:")
    for i, err in skipped[:3]:
        print(i, "".join(traceback.format_exception_only(type(err), err)).strip())


if __name__ == "__main__":
    main()
