"""Vision: segmentation, scaler, contrastive queue, distillation, diffusion."""
import copy
import torch
from torch import nn
import torch.nn.functional as F
import torchvision
from loop import main
from ddpm import Eps


def segment_with_metrics():
    net = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=12).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    hits = torch.zeros(12, device="cuda")
    for i in range(8):
        x, y = torch.randn(8, 3, 256, 256, device="cuda"), torch.zeros(8, 256, 256, dtype=torch.long, device="cuda")
        out = net(x)["out"]
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += torch.bincount(out.detach()[:, :, ::64, ::64].argmax(1).flatten(), minlength=12)
    print(hits.tolist())


def scaled_half():
    net = torchvision.models.resnet18(num_classes=200).cuda().to(memory_format=torch.channels_last)
    opt, scaler = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=1e-4), torch.amp.GradScaler()
    for _ in range(8):
        x = torch.randn(64, 3, 160, 160, device="cuda").contiguous(memory_format=torch.channels_last)
        y = torch.randint(0, 200, (64,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


def moco(queue=8192, dim=128):
    q = torchvision.models.resnet18(num_classes=dim).cuda()
    k = copy.deepcopy(q).requires_grad_(False)
    keys, at = torch.zeros(queue, dim, device="cuda"), 0
    opt = torch.optim.SGD(q.parameters(), 0.03)
    for _ in range(10):
        x = torch.randn(64, 3, 128, 128, device="cuda")
        a = F.normalize(q(x), dim=-1)
        with torch.no_grad():
            for m, n in zip(k.parameters(), q.parameters()):
                m.lerp_(n, 0.001)
            b = F.normalize(k(x.flip(-1)), dim=-1)
        logits = torch.cat([(a * b).sum(-1, keepdim=True), a @ keys.t()], 1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(64, dtype=torch.long, device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        keys[at:at + 64] = b
        at = (at + 64) % queue


def distil():
    teacher = torchvision.models.resnet34().cuda().eval().requires_grad_(False)
    student = torchvision.models.mobilenet_v3_small().cuda()
    opt = torch.optim.AdamW(student.parameters(), 1e-3)
    for _ in range(8):
        x = torch.randn(64, 3, 192, 192, device="cuda")
        with torch.no_grad():
            t = teacher(x)
        loss = F.kl_div(student(x).log_softmax(-1), t.softmax(-1), reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()


def diffuse_small():
    net = Eps(w=32).cuda()
    shadow = copy.deepcopy(net).requires_grad_(False)
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    for _ in range(5):
        x, e = torch.randn(2, 16, 3, 64, 64, device="cuda")
        loss = F.mse_loss(net(x + e, torch.rand(16, device="cuda")), e)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(shadow.parameters()), list(net.parameters()), 0.001)


def grad_cam_once():
    net, kept = torchvision.models.resnet18().cuda().eval(), {}
    handle = net.layer4.register_forward_hook(lambda m, a, o: kept.update(f=o))
    maps = []
    for _ in range(6):
        out = net(torch.randn(16, 3, 224, 224, device="cuda"))
        g, = torch.autograd.grad(out.amax(1).sum(), kept["f"])
        maps.append((g.mean((2, 3), keepdim=True) * kept["f"]).sum(1).relu().detach().cpu())
        kept.clear()
    handle.remove()


if __name__ == "__main__":
    main(globals())
