"""Transducer for dictation: encoder over frames, predictor over pieces, a joint network over both."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

PIECES = 6144
device = "cuda"
torch.manual_seed(12)


class Dictations(Dataset):
    def __init__(self, n=96):
        g = torch.Generator().manual_seed(1)
        self.frames = [int(t) for t in torch.randint(360, 480, (n,), generator=g)]
        self.pieces = [torch.randint(1, PIECES, (int(u),), generator=g) for u in torch.randint(24, 40, (n,), generator=g)]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return torch.zeros(self.frames[i], 80).normal_(), self.pieces[i]


def collate(batch):
    t, u = max(len(x) for x, _ in batch), max(len(y) for _, y in batch)
    x, y = torch.zeros(len(batch), t, 80), torch.zeros(len(batch), u, dtype=torch.long)
    for k, (a, b) in enumerate(batch):
        x[k, :len(a)], y[k, :len(b)] = a, b
    return x, y, torch.tensor([(len(a) // 4, len(b)) for a, b in batch])


class Transducer(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(80, dim, 3, 2, 1), nn.ReLU(), nn.Conv1d(dim, dim, 3, 2, 1), nn.ReLU())
        layer = nn.TransformerEncoderLayer(dim, 8, 2048, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.embed = nn.Embedding(PIECES, dim)
        self.predictor = nn.LSTM(dim, dim, batch_first=True)
        self.joint = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, PIECES)

    def forward(self, x, y):
        enc = self.encoder(self.front(x.transpose(1, 2)).transpose(1, 2))
        pred, _ = self.predictor(F.pad(self.embed(y), (0, 0, 1, 0)))
        return enc, pred

    def lattice(self, enc, pred, y):
        """Log probabilities of blank and of the next piece at each node (t, u)."""
        h = torch.tanh(self.joint(enc).unsqueeze(2) + pred.unsqueeze(1))
        logp = self.out(h).log_softmax(-1)
        target = y[:, None, :, None].expand(-1, logp.size(1), -1, -1)
        return logp[..., 0], logp[:, :, :-1].gather(-1, target).squeeze(-1)


def path_loss(blank, piece):
    """Along the anti-diagonals, in logarithms."""
    u = piece.size(2)
    alpha = torch.zeros(blank.size(0), u + 1, device=blank.device)
    for t in range(0, blank.size(1), 12):
        step = F.pad((alpha[:, :-1] + piece[:, t]), (1, 0), value=-1e4)
        alpha = torch.logaddexp(alpha + blank[:, t], step)
    return -alpha[:, -1].mean() / u


model = Transducer().to(device)
opt = torch.optim.AdamW(model.parameters(), 5e-4)
loader = DataLoader(Dictations(), batch_size=8, shuffle=True, collate_fn=collate)
for step, (x, y, lengths) in enumerate(loader):
    x, y = x.to(device), y.to(device)
    enc, pred = model(x, y)
    blank, piece = model.lattice(enc, pred, y)
    loss = path_loss(blank, piece)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    opt.step()
    if step % 3 == 0:
        print(step, f"{loss.item():.3f}", "longest", lengths.max(0).values.tolist())
