# cifar-ish convnet, semi supervised. run: python cifar_consistency.py
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

batch_size = 512
epochs = 2
steps_per_epoch = 90
log_every = 5
# use_mixup = False


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


net = nn.Sequential(
    block(3, 64), block(64, 64), nn.MaxPool2d(2),
    block(64, 128), block(128, 128), nn.MaxPool2d(2),
    block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(256, 10),
).to(device)

opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs * steps_per_epoch)

log = {"loss": [], "acc": [], "consistency": []}

for epoch in range(epochs):
    net.train()
    for it in range(steps_per_epoch):
        x = torch.rand(batch_size, 3, 32, 32).to(device)
        y = torch.randint(0, 10, (batch_size,)).to(device)

        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()

        if it % log_every == 0:
            # how stable are predictions under a flip? (only monitoring for now)
            out_flip = net(torch.flip(x, dims=[3]))
            cons = F.kl_div(F.log_softmax(out_flip, 1), F.softmax(out.detach(), 1), reduction="batchmean")
            log["loss"].append(loss.item())
            log["acc"].append((out.argmax(1) == y).float().mean().item())
            log["consistency"].append(cons)
            print(f"epoch {epoch} it {it:4d} loss {loss.item():.4f} acc {log['acc'][-1]:.3f}")

    mean_cons = sum(float(c) for c in log["consistency"]) / len(log["consistency"])
    print("epoch", epoch, "consistency", mean_cons)
