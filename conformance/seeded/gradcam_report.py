import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50


class Scans(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.x = torch.randint(0, 255, (64, 3, 256, 256), dtype=torch.uint8, generator=g)
        self.y = torch.randint(0, 5, (n,), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i % 64].float().div(255).sub(0.45).div(0.225), int(self.y[i])


class GradCAM:
    def __init__(self, model, layers):
        self.model = model.eval()
        self.layers = layers
        self.activations = {name: [] for name in layers}
        self.gradients = {name: [] for name in layers}
        modules = dict(model.named_modules())
        for name in layers:
            modules[name].register_forward_hook(self._save_activation(name))
            modules[name].register_full_backward_hook(self._save_gradient(name))

    def _save_activation(self, name):
        def hook(module, inputs, output):
            self.activations[name].append(output.detach())
        return hook

    def _save_gradient(self, name):
        def hook(module, grad_in, grad_out):
            self.gradients[name].append(grad_out[0].detach())
        return hook

    def __call__(self, x, target=None):
        self.model.zero_grad()
        logits = self.model(x)
        index = logits.argmax(1) if target is None else target
        logits.gather(1, index[:, None]).sum().backward()
        maps = []
        for name in self.layers:
            act, grad = self.activations[name][-1], self.gradients[name][-1]
            w = grad.mean(dim=(2, 3), keepdim=True)
            cam = F.relu((w * act).sum(1, keepdim=True))
            maps.append(F.interpolate(cam, size=x.shape[-2:], mode='bilinear', align_corners=False))
        return logits.softmax(1), torch.stack(maps).mean(0).squeeze(1)


def main(args):
    model = resnet50(num_classes=5)
    model.to('cuda')
    cam = GradCAM(model, ['layer1', 'layer2', 'layer3', 'layer4'])
    loader = DataLoader(Scans(args.images), batch_size=args.batch_size)

    rows, heat = [], torch.zeros(256, 256)
    for i, (x, y) in enumerate(loader):
        probs, maps = cam(x.cuda(), y.cuda())
        maps = maps.cpu()
        heat += maps.sum(0)
        for p, label, m in zip(probs.detach().cpu(), y, maps):
            rows.append((int(label), float(p[label]), float(m.max()), float(m.mean())))
        print(f'batch {i}: {len(rows)} images explained')

    correct = sum(p for _, p, _, _ in rows) / len(rows)
    print('mean probability of the label', correct)
    torch.save({'heat': heat / len(rows), 'rows': rows}, '/tmp/gradcam_report.pt')


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--images', type=int, default=480)
    parser.add_argument('--batch-size', type=int, default=12)
    main(parser.parse_args())
