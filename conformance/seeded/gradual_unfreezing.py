"""Gradual unfreezing (ULMFiT): each stage trains one block more, with a fresh optimizer and schedule."""
import torch
import torch.nn as nn

from note import note, size_of

config = {
    "width": 3072,
    "blocks": 8,
    "stages": 8,
    "steps_per_stage": 3,
    "lr": 1e-3,
}


class Stage:
    def __init__(self, index, params, lr):
        self.index = index
        self.params = params
        self.optimizer = torch.optim.AdamW(params, lr=lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, total_iters=10)


class Runner:
    def __init__(self, config):
        self.config = config
        w = config["width"]
        self.body = nn.ModuleList(
            nn.Sequential(nn.Linear(w, w, device="cuda"), nn.GELU(), nn.Linear(w, w, device="cuda")) for _ in range(config["blocks"]))
        self.body.requires_grad_(False)
        self.stages = []

    def start_stage(self, index):
        for block in self.body[-(index + 1):]:
            block.requires_grad_(True)
        params = [p for p in self.body.parameters() if p.requires_grad]
        stage = Stage(index, params, self.config["lr"] * 0.9 ** index)
        self.stages.append(stage)
        return stage

    def forward(self, x):
        for block in self.body:
            x = x + block(x)
        return x

    def run(self):
        for index in range(self.config["stages"]):
            stage = self.start_stage(index)
            for _ in range(self.config["steps_per_stage"]):
                x = torch.randn(128, self.config["width"], device="cuda")
                loss = self.forward(x).square().mean()
                loss.backward()
                stage.optimizer.step()
                stage.scheduler.step()
                stage.optimizer.zero_grad()
            note(size_of([state[key] for one in self.stages for state in one.optimizer.state.values()
                          for key in ("exp_avg", "exp_avg_sq")]))
            print("stage", index, "lrs", [f"{s.scheduler.get_last_lr()[0]:.1e}" for s in self.stages])


Runner(config).run()
