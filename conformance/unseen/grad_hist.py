import collections
import torch
import torch.nn as nn

HIST = collections.defaultdict(list)     # name -> gradients, written to tensorboard at the end of the epoch


def log_gradients(model, step):
    for name, p in model.named_parameters():
        if p.grad is not None:
            HIST[name].append(p.grad.detach().clone())


def write_histograms(writer=None):
    for name, values in HIST.items():
        for i, v in enumerate(values):
            h = torch.histc(v.float(), bins=64)
            if writer is not None:
                writer.add_histogram(name, h, i)


class Highway(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.h, self.t = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        g = torch.sigmoid(self.t(x))
        return g * torch.relu(self.h(x)) + (1 - g) * x


def build():
    return nn.Sequential(nn.Linear(1000, 3000), *[Highway(3000) for _ in range(5)], nn.Linear(3000, 200))


model = build().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
lossf = nn.CrossEntropyLoss()
global_step = 0
for epoch in range(2):
    for batch in range(45):
        inputs = torch.randn(1024, 1000).cuda()
        targets = torch.randint(200, (1024,)).cuda()
        optimizer.zero_grad()
        loss = lossf(model(inputs), targets)
        loss.backward()
        log_gradients(model, global_step)
        optimizer.step()
        global_step += 1
        if batch % 10 == 0:
            print("epoch", epoch, "batch", batch, "loss", loss.item())
    write_histograms()
