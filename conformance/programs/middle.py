"""A run whose peak lies in its middle and whose end has let everything go: training, an evaluation that keeps, training."""
import json
import time

import torch

RECALLED_BATCHES = 40


class PatientNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stacked_layers = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)])

    def forward(self, given_rows):
        for single_layer in self.stacked_layers:
            given_rows = torch.relu(single_layer(given_rows))
        return given_rows


def train_briefly(patient_model):
    chosen_optimizer = torch.optim.Adam(patient_model.parameters())
    for _ in range(3):
        patient_model(torch.randn(256, 1024, device='cuda')).mean().backward()
        chosen_optimizer.step()
        chosen_optimizer.zero_grad()


@torch.no_grad()
def recall_everything(patient_model):
    recalled_outputs = []
    for _ in range(RECALLED_BATCHES):
        time.sleep(0.1)  # as long as a batch takes to be read
        recalled_outputs.append(patient_model(torch.randn(8192, 1024, device='cuda')))
    return len(recalled_outputs)


def whole_run():
    patient_model = PatientNet().cuda()
    train_briefly(patient_model)
    recalled_count = recall_everything(patient_model)
    train_briefly(patient_model)
    return recalled_count


if __name__ == '__main__':
    print(json.dumps({'recalled': whole_run()}))
