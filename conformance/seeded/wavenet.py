"""Raw audio, dilated convolutions; somebody raised the clip from one second to six."""
import torch
from torch import nn
import torch.nn.functional as F
from note import at_failure, over, allocated
from loop import main


class Gate(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.fg, self.mix, self.d = nn.Conv1d(c, 2 * c, 2, dilation=d), nn.Conv1d(c, 2 * c, 1), d

    def forward(self, x):
        f, g = self.fg(F.pad(x, (self.d, 0))).chunk(2, 1)
        r, s = self.mix(f.tanh() * g.sigmoid()).chunk(2, 1)
        return x + r, s


class WaveNet(nn.Module):
    def __init__(self, c=64, stacks=3):
        super().__init__()
        self.inp = nn.Conv1d(1, c, 1)
        self.gates = nn.ModuleList(Gate(c, 1 << i) for _ in range(stacks) for i in range(10))
        self.out = nn.Conv1d(c, 30, 1)

    def forward(self, x):
        x, total = self.inp(x), 0
        for g in self.gates:
            x, s = g(x)
            total = total + s
        return self.out(F.relu(total))


def vocoder(seconds=6, batch=4, warm=2):
    net = WaveNet().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    base = None
    for step in range(warm + 3):
        length = 16000 * (1 if step < warm else seconds)
        with at_failure(over(allocated())):
            y = net(torch.randn(batch, 1, length, device="cuda"))
            y.square().mean().backward()
            del y
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
