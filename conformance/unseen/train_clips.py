import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class ClipDataset(Dataset):
    """Short clips of 64 frames, decoded once."""

    def __init__(self, count, frames=64, size=176, device="cuda"):
        self.frames, self.size, self.device = frames, size, device
        self.clips = [self.decode(i) for i in range(count)]
        self.labels = torch.arange(count) % 51

    def decode(self, index):
        raw = torch.empty(3, self.frames, self.size, self.size, dtype=torch.uint8)
        clip = raw.to(self.device).float().div_(255)
        return clip.sub_(0.45).div_(0.225)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index], self.labels[index]


class Conv3dNet(nn.Module):
    def __init__(self, classes=51, widths=(64, 96, 192, 384)):
        super().__init__()
        layers, cin = [], 3
        for i, w in enumerate(widths):
            stride = (1, 2, 2) if i == 0 else 2
            layers += [nn.Conv3d(cin, w, 3, stride=stride, padding=1, bias=False), nn.BatchNorm3d(w), nn.ReLU(True),
                       nn.Conv3d(w, w, 3, padding=1, bias=False), nn.BatchNorm3d(w), nn.ReLU(True)]
            cin = w
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(cin, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3, 4)))


def main():
    torch.manual_seed(0)
    dataset = ClipDataset(400)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True)
    model = Conv3dNet().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    criterion = nn.CrossEntropyLoss()
    print(len(dataset), "clips", flush=True)
    for epoch in range(2):
        for step, (clips, labels) in enumerate(loader):
            clips, labels = clips.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = criterion(model(clips), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, step, loss.item(), flush=True)


main()
