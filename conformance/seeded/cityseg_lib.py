import torch


class ConfusionTracker:
    """Confusion matrix over a validation set."""

    def __init__(self, classes):
        self.classes = classes
        self.reset()

    def reset(self):
        self.logits = []
        self.labels = []

    def update(self, logits, label):
        self.logits.append(logits)
        self.labels.append(label)

    def compute(self):
        n = self.classes
        matrix = torch.zeros(n * n, dtype=torch.long, device=self.labels[0].device)
        for logits, label in zip(self.logits, self.labels):
            hard = logits.argmax(1) if logits.is_floating_point() else logits.long()
            flat = (label.long() * n + hard).flatten()
            matrix.scatter_add_(0, flat, torch.ones_like(flat))
        matrix = matrix.view(n, n).float()
        hit = matrix.diagonal()
        union = matrix.sum(0) + matrix.sum(1) - hit
        return (hit / union.clamp(min=1)).mean().item()
