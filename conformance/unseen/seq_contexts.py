import gc

import torch
import torch.nn as nn
import torch.nn.functional as F


class StepContext:
    """What one step knows: its batch, its output and the reports made of it."""

    def __init__(self, number, frames):
        self.number = number
        self.frames = frames
        self.output = None
        self.reports = []

    def finish(self, output):
        self.output = output.detach()
        self.reports.append(Report(self, "energy", self.output.square().mean()))
        self.reports.append(Report(self, "spread", self.output.std()))


class Report:
    def __init__(self, context, name, value):
        self.context, self.name, self.value = context, name, value

    def __str__(self):
        return f"[{self.context.number}] {self.name} {self.value.item():.4f}"


class VideoPredictor(nn.Module):
    def __init__(self, frames=8, width=64):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3 * frames, width, 5, 2, 2), nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.LeakyReLU(0.1),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.LeakyReLU(0.1))
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(width, 3 * frames, 4, 2, 1))

    def forward(self, clip):
        b, t, c, h, w = clip.shape
        return self.decode(self.encode(clip.reshape(b, t * c, h, w))).view(b, t, c, h, w)


def main():
    gc.collect()
    gc.disable()        # steadier step times
    device = "cuda"
    model = VideoPredictor().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    for number in range(400):
        clip = torch.rand(32, 16, 3, 256, 256, device=device)
        context = StepContext(number, clip)
        output = model(clip[:, :8])
        loss = F.l1_loss(output, clip[:, 8:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        context.finish(output)
        if number % 5 == 0:
            print(f"loss {loss.item():.4f}", *context.reports, flush=True)


if __name__ == "__main__":
    main()
