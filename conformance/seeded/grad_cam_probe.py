import torch
import torch.nn as nn

from note import note


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBlock(3, 32)
        self.stage1 = ConvBlock(32, 64)
        self.stage2 = ConvBlock(64, 64)
        self.stage3 = ConvBlock(64, 128)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(self.stem(x))
        x = self.stage2(self.stage1(x))
        x = self.pool(x)
        x = self.stage3(x)
        return self.fc(x.mean((2, 3)))


class Probe:
    """Collects what Grad-CAM needs from a layer."""

    def __init__(self, module, name):
        self.name = name
        self.store = {"activation": [], "gradient": []}
        self.handles = [
            module.register_forward_hook(self._forward),
            module.register_full_backward_hook(self._backward),
        ]

    def _forward(self, module, inputs, output):
        self.store["activation"].append(output.detach().clone())
        kept.append(output.nbytes)

    def _backward(self, module, grad_in, grad_out):
        self.store["gradient"].append(grad_out[0].clone())
        kept.append(grad_out[0].nbytes)
        note(sum(kept))

    def cam(self):
        a, g = self.store["activation"][-1], self.store["gradient"][-1]
        return torch.relu((a * g.mean((2, 3), keepdim=True)).sum(1)).cpu()

    def close(self):
        for h in self.handles:
            h.remove()
        self.store = {"activation": [], "gradient": []}


kept = []
net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
probe = None

for epoch in range(4):
    for it in range(25):
        x = torch.randn(64, 3, 96, 96, device="cuda")
        y = torch.randint(0, 10, (64,)).cuda()
        loss = loss_fn(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    # one picture per epoch for the report
    probe = Probe(net.stage2, "stage2")
    x = torch.randn(8, 3, 96, 96, device="cuda")
    net(x)[:, 0].sum().backward()
    cam = probe.cam()
    print("epoch", epoch, tuple(cam.shape))
