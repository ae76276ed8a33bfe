"""Semi-supervised classifier with a small trainer of its own."""
import torch
import torch.nn.functional as F
import torchvision
from note import Growth
from loop import main


class Trainer:
    def __init__(self, net, lr=0.05):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.history = {"ce": [], "agree": []}
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 10)

    def step(self, x, u, y):
        out = self.net(x)
        ce = F.cross_entropy(out, y)
        self.opt.zero_grad()
        ce.backward()
        self.opt.step()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            agree = F.mse_loss(self.net(u).softmax(-1), self.net(u.flip(-1)).softmax(-1))
        self.history["ce"].append(ce.item())
        self.history["agree"].append(agree)


def fit(steps=40):
    net = torchvision.models.resnet18(num_classes=100).cuda()
    trainer, grown = Trainer(net), Growth()
    for i in range(steps):
        x = torch.randn(32, 3, 160, 160, device="cuda")
        u = torch.randn(16, 3, 160, 160, device="cuda")
        y = torch.randint(0, 100, (32,), device="cuda")
        trainer.step(x, u, y)
        trainer.sched.step()
        del x, u, y
        grown.note()


if __name__ == "__main__":
    main(globals())
