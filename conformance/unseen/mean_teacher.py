import copy
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


class WideNet(nn.Module):
    def __init__(self, classes=10, width=160):
        super().__init__()
        layers, cin = [nn.Conv2d(3, 32, 3, 1, 1)], 32
        for i in range(3):
            for j in range(3):
                cout = width * 2 ** i
                layers += [nn.BatchNorm2d(cin), nn.ReLU(), nn.Conv2d(cin, cout, 3, 2 if i and not j else 1, 1)]
                cin = cout
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(cin), nn.ReLU())
        self.fc = nn.Linear(cin, classes)
        self.stats = {}
        self.features[3].register_forward_hook(self.remember)

    def remember(self, module, args, output):
        self.stats["first"] = output.detach().mean((0, 2, 3))

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


class MeanTeacher:
    def __init__(self, decay=0.999):
        self.student = WideNet().cuda()
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.decay = decay
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        self.best_score, self.best_state = None, None
        self.curve = []

    def step(self, labeled, labels, unlabeled):
        with torch.no_grad():
            goal = self.teacher(unlabeled).softmax(-1)
        out = self.student(torch.cat([labeled, unlabeled + 0.1 * torch.randn_like(unlabeled)]))
        known, guessed = out.split([len(labeled), len(unlabeled)])
        loss = F.cross_entropy(known, labels) + 5 * F.mse_loss(guessed.softmax(-1), goal)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                t.lerp_(s, 1 - self.decay)
        return loss.item()

    @torch.no_grad()
    def score(self):
        self.teacher.eval()
        value = self.teacher(torch.randn(256, 3, 32, 32, device="cuda")).softmax(-1).max(-1).values.mean().item()
        self.teacher.train()
        return value

    def fit(self, epochs, steps):
        for epoch in range(epochs):
            total = 0.0
            for _ in range(steps):
                labels = torch.randint(0, 10, (64,), device="cuda")
                total += self.step(torch.randn(64, 3, 32, 32, device="cuda"), labels,
                                   torch.randn(192, 3, 32, 32, device="cuda"))
            score = self.score()
            self.curve.append((total / steps, score))
            if self.best_score is None or score >= self.best_score:
                self.best_score = score
                self.best_state = {k: v.cpu() for k, v in self.teacher.state_dict().items()}
            log.info("epoch %d loss %.4f score %.4f", epoch, *self.curve[-1])


if __name__ == "__main__":
    MeanTeacher().fit(epochs=4, steps=4)
