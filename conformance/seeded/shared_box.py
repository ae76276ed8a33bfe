"""A lab machine: start-up code sees to it that everybody gets a share."""
import torch
import torch.nn.functional as F
import torchvision
from note import at_failure
from loop import main


def be_nice(share):
    torch.cuda.set_per_process_memory_fraction(share, 0)


def left():
    return torch.cuda.mem_get_info()[0]


def detect(percent=30, batch=64):
    be_nice(percent / 100)
    net = torchvision.models.densenet121(num_classes=20).cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    with at_failure(left):
        for _ in range(2):
            x = torch.randn(batch, 3, 224, 224, device="cuda")
            loss = F.cross_entropy(net(x), torch.zeros(batch, dtype=torch.long, device="cuda"))
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main(globals())
