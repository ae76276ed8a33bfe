"""Goes on with an interrupted training."""
import os
import tempfile
import torch
from note import note, size_of
from loop import main
from zoo import mlp


def build():
    return mlp(4096, 8, 512, 128)


def interrupted(path):
    torch.save({"model": build().state_dict(), "epoch": 7}, path)


def continue_training(steps=3):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        interrupted(path)
        net = build().cuda()
        ckpt = torch.load(path, map_location="cuda")
    net.load_state_dict(ckpt["model"])
    note(size_of(ckpt["model"].values()))
    opt = torch.optim.SGD(net.parameters(), 0.01)
    for epoch in range(ckpt["epoch"], ckpt["epoch"] + steps):
        x = torch.randn(1024, 512, device="cuda")
        net(x).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
