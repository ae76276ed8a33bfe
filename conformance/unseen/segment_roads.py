import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RoadTiles(Dataset):
    def __init__(self, length, size=256):
        self.length, self.size = length, size

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        image = torch.zeros(3, self.size, self.size)
        mask = torch.zeros(self.size, self.size, dtype=torch.long)
        return image, mask


def double(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, classes=5, base=32, depth=4):
        super().__init__()
        widths = [base * 2 ** i for i in range(depth)]
        self.enc = nn.ModuleList()
        cin = 3
        for w in widths:
            self.enc.append(double(cin, w))
            cin = w
        self.pool = nn.MaxPool2d(2)
        self.up, self.dec = nn.ModuleList(), nn.ModuleList()
        for w in reversed(widths[:-1]):
            self.up.append(nn.ConvTranspose2d(cin, w, 2, 2))
            self.dec.append(double(w * 2, w))
            cin = w
        self.head = nn.Conv2d(cin, classes, 1)

    def forward(self, x):
        skips = []
        for i, enc in enumerate(self.enc):
            x = enc(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, dec in zip(self.up, self.dec):
            x = dec(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


class Trainer:
    def __init__(self, model, train, val, lr=3e-4):
        self.model = model.cuda()
        self.train_loader = DataLoader(train, batch_size=8, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=8)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for image, mask in self.train_loader:
            image, mask = image.cuda(), mask.cuda()
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(image), mask)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    def validate(self):
        self.model.eval()
        batch_losses = []
        for image, mask in self.val_loader:
            logits = self.model(image.cuda())
            batch_losses.append(self.criterion(logits, mask.cuda()))
        return torch.stack(batch_losses).mean().item()

    def fit(self, epochs):
        best = float("inf")
        for epoch in range(epochs):
            train_loss = self.train_epoch()
            print(f"epoch {epoch} train {train_loss:.4f}", flush=True)
            val_loss = self.validate()
            print(f"epoch {epoch} val {val_loss:.4f}", flush=True)
            best = min(best, val_loss)


if __name__ == "__main__":
    Trainer(UNet(), RoadTiles(48), RoadTiles(320)).fit(epochs=3)
