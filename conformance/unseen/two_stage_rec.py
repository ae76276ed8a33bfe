"""Stage 1: train the autoencoder. Stage 2: keep only the encoder, train the ranking head on top."""
import torch
import torch.nn as nn

USERS, DIM = 60_000, 4096


class AutoEnc(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(USERS // 4, DIM), nn.ReLU(), nn.Linear(DIM, 1024))
        self.decoder = nn.Sequential(nn.Linear(1024, DIM), nn.ReLU(), nn.Linear(DIM, USERS))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Ranker(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
        self.mixer = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.score = nn.Linear(1024, 1)

    def forward(self, x):
        with torch.no_grad():
            h = self.encoder(x)
        return self.score(self.mixer(h)).squeeze(-1)


dev = "cuda"
torch.manual_seed(0)
with torch.device(dev):
    ae = AutoEnc()
ae_opt = torch.optim.Adam(ae.parameters(), lr=1e-3)
for step in range(30):
    x = torch.rand(512, USERS // 4, device=dev)
    target = torch.rand(512, USERS, device=dev)
    loss = nn.functional.mse_loss(ae(x), target)
    ae_opt.zero_grad()
    loss.backward()
    ae_opt.step()
print("stage 1", loss.item())

encoder = ae.encoder
for p in encoder.parameters():
    p.requires_grad = False
    p.grad = None
del ae, x, target, loss
torch.cuda.empty_cache()

with torch.device(dev):
    ranker = Ranker(encoder)
optimizer = torch.optim.Adam([p for p in ranker.parameters() if p.requires_grad], lr=1e-4)
for step in range(40):
    items = torch.rand(104, 96, USERS // 4, device=dev)
    clicks = torch.rand(104, 96, device=dev).round()
    loss = nn.functional.binary_cross_entropy_with_logits(ranker(items), clicks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print("stage 2", step, loss.item())
