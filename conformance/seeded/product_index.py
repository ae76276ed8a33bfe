"""Fine-tune an image encoder on product pairs, then embed the catalogue and answer queries."""
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import vit_b_16

device = 'cuda'


def info_nce(a, b, temperature=0.07):
    logits = a @ b.T / temperature
    return F.cross_entropy(logits, torch.arange(len(a), device=a.device))


class ProductIndex:
    def __init__(self, encoder):
        self.encoder = encoder
        self.vectors = None
        self.names = []

    def add(self, loader):
        self.encoder.eval()
        parts = [] if self.vectors is None else [self.vectors]
        for first, (images,) in enumerate(loader):
            z = F.normalize(self.encoder(images.to(device)), dim=-1)
            parts.append(z.cpu())
            self.names += [f'sku-{first}-{i}' for i in range(len(images))]
        self.vectors = torch.cat(parts)

    @torch.no_grad()
    def query(self, images, top=5):
        self.encoder.eval()
        z = F.normalize(self.encoder(images.to(device)), dim=-1).cpu()
        best = (z @ self.vectors.T).topk(top, dim=1).indices
        return [[self.names[j] for j in row] for row in best.tolist()]


def finetune(encoder, steps, batch):
    encoder.train()
    trained = [p for n, p in encoder.named_parameters() if 'encoder_layer_1' in n or 'heads' in n]
    for p in encoder.parameters():
        p.requires_grad_(False)
    for p in trained:
        p.requires_grad_(True)
    optimizer = torch.optim.AdamW(trained, lr=1e-5)
    for step in range(steps):
        a = torch.rand(batch, 3, 224, 224).to(device)
        b = torch.rand(batch, 3, 224, 224).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = info_nce(F.normalize(encoder(a), dim=-1), F.normalize(encoder(b), dim=-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print('finetuned', steps, 'steps')


def main():
    torch.manual_seed(0)
    encoder = vit_b_16(weights=None, num_classes=256).to(device)
    finetune(encoder, steps=6, batch=8)

    catalogue = TensorDataset(torch.zeros(16 * 20, 3, 224, 224))
    index = ProductIndex(encoder)
    index.add(DataLoader(catalogue, batch_size=16))
    print('indexed', len(index.names))

    for _ in range(3):
        answers = index.query(torch.rand(4, 3, 224, 224))
        print(answers[0])


main()
