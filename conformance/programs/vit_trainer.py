"""ViT-base by transformers.Trainer, over random images."""

import torch
from tell import tell
from torch.utils.data import Dataset
from trainer import train
from transformers import ViTConfig, ViTForImageClassification


class RandomImages(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        image = torch.randn(3, 224, 224, generator=torch.Generator().manual_seed(index))
        return {"pixel_values": image, "labels": index % 10}


torch.manual_seed(0)
steps = train(ViTForImageClassification(ViTConfig(num_labels=10)), RandomImages(), steps=3, batch=16)
tell("vit_trainer", steps=steps)
