"""Keeps statistics of the layers of a vision transformer, as an interpretability student would."""
import torch
import torch.nn.functional as F
from torchvision.models.vision_transformer import VisionTransformer
from note import note, size_of
from loop import main


class Probe:
    def __init__(self, model, kind):
        self.store, self.handles = {}, []
        for name, m in model.named_modules():
            if isinstance(m, kind):
                self.handles.append(m.register_forward_hook(self.make(name)))

    def make(self, name):
        def keep(module, args, out):
            self.store.setdefault(name, []).append(out.detach())
        return keep

    def mean(self, name):
        return torch.stack([x.mean() for x in self.store[name][-4:]]).mean()

    def close(self):
        for h in self.handles:
            h.remove()


def probe_vit(steps=60):
    vit = VisionTransformer(image_size=160, patch_size=16, num_layers=8, num_heads=6, hidden_dim=384, mlp_dim=1536, num_classes=50).cuda()
    probe = Probe(vit, torch.nn.GELU)
    opt = torch.optim.AdamW(vit.parameters(), 1e-3)
    for i in range(steps):
        x, y = torch.randn(64, 3, 160, 160, device="cuda"), torch.randint(0, 50, (64,), device="cuda")
        loss = F.cross_entropy(vit(x), y)
        del x
        opt.zero_grad()
        loss.backward()
        opt.step()
        note(size_of([t for ts in probe.store.values() for t in ts]))


if __name__ == "__main__":
    main(globals())
