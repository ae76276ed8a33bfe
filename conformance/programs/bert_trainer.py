"""BERT-base by transformers.Trainer: bf16, two batches a step."""

import torch
from tell import tell
from trainer import RandomTokens, train
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(0)
model = BertForMaskedLM(BertConfig())
steps = train(model, RandomTokens(64, 256, 30522), steps=3, batch=8, gradient_accumulation_steps=2)
tell("bert_trainer", steps=steps)
