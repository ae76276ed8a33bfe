import torch
import torch.nn as nn


# space-time transformer for action recognition. 16 frames of 224 px
class Tubelets(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.p = nn.Conv3d(3, d, (2, 16, 16), (2, 16, 16))

    def forward(self, v):
        return self.p(v).flatten(2).transpose(1, 2)


class VideoNet(nn.Module):
    def __init__(self, d=1024, n=24, classes=400):
        super().__init__()
        self.tub = Tubelets(d)
        self.pos = nn.Parameter(torch.zeros(1, 8 * 14 * 14, d))
        layer = nn.TransformerEncoderLayer(d, 16, 4 * d, 0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, n, enable_nested_tensor=False)
        self.fc = nn.Linear(d, classes)

    def forward(self, v):
        return self.fc(self.enc(self.tub(v) + self.pos).mean(1))


class Engine:
    def __init__(self):
        with torch.device("cuda"):
            self.net = VideoNet()
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-4)
        self.meter = []

    def step(self, clips, labels):
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(self.net(clips), labels)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.meter.append(loss.item())


engine = Engine()
for i in range(10):
    engine.step(torch.rand(24, 3, 16, 224, 224, device="cuda"), torch.randint(0, 400, (24,), device="cuda"))
    print("iter", i, engine.meter[-1])
