"""Pretraining of a code model that stops and goes on: saves a checkpoint, and resumes from it in a new process' place."""
import argparse
import os
import tempfile
from types import SimpleNamespace

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

device = torch.device('cuda')


def build(cfg):
    config = GPTNeoXConfig(
        vocab_size=cfg.vocab, hidden_size=cfg.width, num_hidden_layers=cfg.depth, num_attention_heads=16,
        intermediate_size=4 * cfg.width, max_position_embeddings=512, attn_implementation='sdpa', use_cache=False)
    model = GPTNeoXForCausalLM(config).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    return SimpleNamespace(model=model, optimizer=optimizer, step=0, cfg=cfg)


def save(run, path):
    torch.save({'model': run.model.state_dict(), 'optimizer': run.optimizer.state_dict(), 'step': run.step}, path)


def resume(run, path):
    state = torch.load(path, map_location=device)
    run.model.load_state_dict(state['model'])
    run.optimizer.load_state_dict(state['optimizer'])
    run.step = state['step']
    return state


def train(run, until):
    gen = torch.Generator().manual_seed(run.step)
    run.model.train()
    while run.step < until:
        ids = torch.randint(run.cfg.vocab, (run.cfg.batch, 256), generator=gen).to(device)
        with torch.autocast('cuda', torch.bfloat16):
            loss = run.model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0, foreach=False)
        run.optimizer.step()
        run.optimizer.zero_grad(set_to_none=True)
        run.step += 1
    print(f'step {run.step} loss {loss.item():.4f}')


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--vocab', type=int, default=16000)
    ap.add_argument('--width', type=int, default=1024)
    ap.add_argument('--depth', type=int, default=12)
    ap.add_argument('--batch', type=int, default=4)
    ap.add_argument('--lr', type=float, default=1e-2)
    cfg = ap.parse_args()
    path = os.path.join(tempfile.mkdtemp(), 'last.pt')

    run = build(cfg)
    train(run, 3)
    save(run, path)
    del run
    torch.cuda.empty_cache()

    run = build(cfg)
    state = resume(run, path)
    os.remove(path)
    print('resumed at', state['step'])
    train(run, 6)


if __name__ == '__main__':
    main()
