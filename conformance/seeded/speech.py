"""Speech recognition with buckets by length; the cluster's environment sets the allocator."""
import torch
from torch import nn
from note import note
from loop import main


class Listener(nn.Module):
    def __init__(self, d=320):
        super().__init__()
        self.c = nn.Conv1d(80, d, 3, 2, 1)
        self.l = nn.ModuleList(nn.TransformerEncoderLayer(d, 4, 4 * d, 0.1, batch_first=True) for _ in range(6))
        self.o = nn.Linear(d, 64)

    def forward(self, x):
        x = self.c(x).transpose(1, 2)
        for layer in self.l:
            x = layer(x)
        return self.o(x).log_softmax(-1)


def listen(steps=6):
    net = Listener().cuda()
    opt = torch.optim.AdamW(net.parameters())
    most = 0
    for i in range(steps):
        x = torch.randn(25, 80, 1100, device="cuda")
        y = net(x)
        s = torch.cuda.memory_stats()
        if s["allocated_bytes.all.current"] > most:
            most = s["allocated_bytes.all.current"]
            note(most - s["requested_bytes.all.current"])
        y.mean().backward()
        opt.step()
        opt.zero_grad()
        del x, y


if __name__ == "__main__":
    main(globals())
