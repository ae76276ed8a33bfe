"""GPT-2 by transformers.Trainer: bf16, with gradient checkpointing where the argument says so."""

import sys

import torch
from tell import tell
from trainer import RandomTokens, train
from transformers import GPT2Config, GPT2LMHeadModel

checkpointing = "checkpointing" in sys.argv[1:]
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config())
steps = train(model, RandomTokens(64, 512, 50257), steps=4, batch=8, gradient_checkpointing=checkpointing)
tell("gpt2_trainer", steps=steps, checkpointing=checkpointing)
