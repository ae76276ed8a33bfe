"""VAE, with a mini-Lightning, as our cluster has no lightning installed"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LitModule(nn.Module):
    def on_train_epoch_start(self): ...
    def on_train_epoch_end(self): ...
    def training_step(self, batch, idx): ...
    def configure_optimizers(self): ...

    def log(self, k, v):
        self._logged = getattr(self, "_logged", {})
        self._logged[k] = float(v)


class LitTrainer:
    def __init__(self, max_epochs, device="cuda"):
        self.max_epochs, self.device = max_epochs, device

    def fit(self, mod, batches):
        mod.to(self.device)
        opt = mod.configure_optimizers()
        for ep in range(self.max_epochs):
            mod.train()
            mod.on_train_epoch_start()
            for i, b in enumerate(batches()):
                out = mod.training_step(b.to(self.device), i)
                opt.zero_grad()
                out["loss"].backward()
                opt.step()
            mod.on_train_epoch_end()
            print("epoch", ep, mod._logged)


class LitVAE(LitModule):
    def __init__(self, latent=128, width=64):
        super().__init__()
        self.training_step_outputs = []
        w = width
        self.enc = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.SiLU(), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.SiLU(),
                                 nn.Flatten(), nn.Linear(2 * w * 256, 2 * latent))
        self.up = nn.Linear(latent, 2 * w * 256)
        self.dec = nn.Sequential(nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(w, 3, 4, 2, 1))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return torch.sigmoid(self.dec(self.up(z).view(z.size(0), -1, 16, 16))), mu, logvar

    def training_step(self, batch, idx):
        rec, mu, logvar = self(batch)
        mse = F.mse_loss(rec, batch)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        out = {"loss": mse + 1e-4 * kl, "mse": mse.detach(), "kl": kl.detach(), "rec": rec, "mu": mu}
        self.training_step_outputs.append(out)
        return out

    def on_train_epoch_end(self):
        outs = self.training_step_outputs
        self.log("mse", torch.stack([o["mse"] for o in outs]).mean())
        self.log("kl", torch.stack([o["kl"] for o in outs]).mean())
        self.last_images = outs[-1]["rec"][:16].detach().cpu()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


def faces(n=12, bs=2048):
    imgs = torch.rand(bs, 3, 64, 64)      # the cached epoch
    for _ in range(n):
        yield imgs


LitTrainer(max_epochs=18).fit(LitVAE(), faces)
