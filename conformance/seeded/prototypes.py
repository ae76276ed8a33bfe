"""Few-shot learning: the support set is whitened at the start of each epoch, prototypes are kept for the report."""
import torch
from torch import nn
import torch.nn.functional as F
from note import at_failure, stranded
from loop import main


def whiten(n=32768):
    f = torch.randn(n, 512, device="cuda")
    gram = f @ f.t()
    return (gram.mean(1, keepdim=True) * f)[:256].clone()


class Proto(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024))

    def forward(self, x):
        return self.net(x)


def few_shot(epochs=3, episodes=10):
    net = Proto().cuda()
    opt, report = torch.optim.Adam(net.parameters(), 1e-3), []
    with at_failure(stranded):
        for _ in range(epochs):
            support = whiten()
            for _ in range(episodes):
                z = net(torch.randn(8192, 512, device="cuda"))
                protos = z.view(8, 1024, 1024).mean(0)
                loss = F.mse_loss(z, protos.repeat(8, 1)) + net(support).mean() * 0
                opt.zero_grad()
                loss.backward()
                opt.step()
                report.append(protos.detach())
                del z, protos, loss
            report = report[-3:]


if __name__ == "__main__":
    main(globals())
