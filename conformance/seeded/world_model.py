"""A world model in the manner of Dreamer; imagined futures are looked at after the run."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note, size_of
from loop import main


class World(nn.Module):
    def __init__(self, z=256):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 32, 4, 2), nn.ELU(), nn.Conv2d(32, 64, 4, 2), nn.ELU(), nn.Conv2d(64, 128, 4, 2), nn.ELU(), nn.Flatten(), nn.Linear(128 * 36, z))
        self.cell, self.back = nn.GRUCell(z, z), nn.Linear(z, 128 * 16)
        self.dec = nn.Sequential(nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ELU(),
                                 nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, frames, n):
        h = self.enc(frames)
        out = []
        for _ in range(n):
            h = self.cell(h, h)
            out.append(self.dec(self.back(h).view(-1, 128, 4, 4)))
        return torch.stack(out, 1)


def dream(steps=60, batch=64, ahead=12):
    world, album = World().cuda(), {}
    opt = torch.optim.Adam(world.parameters(), 1e-4)
    for step in range(steps):
        frames, future = torch.randn(batch, 3, 64, 64, device="cuda"), torch.randn(batch, ahead, 3, 64, 64, device="cuda")
        seen = world(frames, ahead)
        loss = F.mse_loss(seen, future)
        opt.zero_grad()
        loss.backward()
        opt.step()
        album[step] = seen.detach().clamp(-0.5, 0.5)
        note(size_of(album.values()))
        del seen, loss, frames, future


if __name__ == "__main__":
    main(globals())
