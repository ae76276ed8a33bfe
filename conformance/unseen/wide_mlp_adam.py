# physics surrogate: wide MLP, 1.6 B parameters, plain Adam in fp32
import torch
import torch.nn as nn


def build(width=20000, depth=5):
    mods = [nn.Linear(64, width), nn.Tanh()]
    for _ in range(depth - 1):
        mods.append(nn.Linear(width, width))
        mods.append(nn.Tanh())
    mods.append(nn.Linear(width, 12))
    return nn.Sequential(*mods)


def main():
    torch.set_default_device("cuda")
    surrogate = build()
    print("parameters: %.2f B" % (sum(q.numel() for q in surrogate.parameters()) / 1e9))
    optimizer = torch.optim.Adam(surrogate.parameters(), lr=1e-4)
    for epoch in range(5):
        inputs = torch.rand(256, 64)
        outputs = torch.rand(256, 12)
        optimizer.zero_grad()
        mse = nn.functional.mse_loss(surrogate(inputs), outputs)
        mse.backward()
        optimizer.step()
        print("epoch", epoch, "mse", mse.item())


if __name__ == "__main__":
    main()
