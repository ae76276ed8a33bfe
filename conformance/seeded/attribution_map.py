"""Integrated gradients for a chest X-ray classifier, one report for each study."""
import importlib
import torch
from torchvision.models import resnet18

reports = importlib.import_module("attribution_map_lib")


def path_points(image, baseline, steps):
    alpha = torch.linspace(0, 1, steps, device=image.device).view(-1, 1, 1, 1)
    return baseline + alpha * (image - baseline)


def integrated_gradients(net, image, finding, steps=24):
    baseline = torch.zeros_like(image)
    points = path_points(image, baseline, steps).requires_grad_(True)
    score = net(points)[:, finding].sum()
    grads, = torch.autograd.grad(score, points)
    reports.note("path", grads)
    return (image - baseline) * grads.mean(0, keepdim=True)


class Explainer:
    def __init__(self, findings=14):
        with torch.device("cuda"):
            self.net = resnet18(num_classes=findings).eval()
        self.net.requires_grad_(False)
        self.findings = findings

    def study(self, name, views):
        with reports.study(name):
            for view in views:
                with torch.no_grad():
                    likely = self.net(view).sigmoid()[0]
                reports.note("likely", likely)
                for finding in range(0, self.findings, 5):
                    heat = integrated_gradients(self.net, view, finding)
                    reports.note("mass", heat.abs().sum((1, 2, 3)))
            return reports.summary()


def main():
    explainer = Explainer()
    for number in range(24):
        views = [torch.rand(1, 3, 320, 320, device="cuda") for _ in range(2)]
        line = explainer.study(f"study-{number:03d}", views)
        if number % 4 == 0:
            print(line)


if __name__ == "__main__":
    main()
