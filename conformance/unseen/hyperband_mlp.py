"""Small random search; every trial is independent and freed before the next."""
import gc
import random
import torch
import torch.nn as nn


def trial(hp):
    layers, last = [], 1024
    for _ in range(hp["depth"]):
        layers += [nn.Linear(last, hp["width"]), nn.GELU(), nn.Dropout(hp["drop"])]
        last = hp["width"]
    model = nn.Sequential(*layers, nn.Linear(last, 100)).to("cuda")
    opt = torch.optim.AdamW(model.parameters(), lr=hp["lr"])
    ema = None
    for step in range(10):
        x = torch.randn(hp["batch"], 1024, device="cuda")
        y = torch.randint(0, 100, (hp["batch"],), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
    return ema


def main():
    rng = random.Random(7)
    history = []
    for t in range(5):
        hp = dict(depth=rng.choice([2, 4, 6]), width=rng.choice([4096, 6144, 8192]), drop=rng.choice([0.0, 0.2]),
                  lr=10 ** rng.uniform(-4, -3), batch=rng.choice([4096, 8192, 16384]))
        score = trial(hp)
        history.append((score, hp))
        gc.collect()
        torch.cuda.empty_cache()
        print(f"trial {t} score {score:.4f} {hp}")
    # the final run with the best setting, larger batch
    best = min(history, key=lambda h: h[0])[1]
    best = dict(best, batch=65536, width=8192, depth=6)
    print("final", trial(best))


if __name__ == "__main__":
    main()
