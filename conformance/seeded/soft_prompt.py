# Prompt tuning (Lester et al.) on top of a GPT-2 that stays as it is
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

torch.manual_seed(42)
device = 'cuda'

N_TOKENS = 20
BATCH_SIZE = 4
SEQ_LEN = 192
MAX_STEPS = 20


class SoftPrompt(nn.Module):
    def __init__(self, wte, n_tokens, init_from_vocab=True):
        super().__init__()
        self.n_tokens = n_tokens
        if init_from_vocab:
            init = wte.weight[:n_tokens].clone().detach()
        else:
            init = torch.empty(n_tokens, wte.weight.size(1)).uniform_(-0.5, 0.5)
        self.learned = nn.Parameter(init)

    def forward(self, embeds):
        prompt = self.learned.unsqueeze(0).expand(embeds.size(0), -1, -1)
        return torch.cat([prompt, embeds], dim=1)


def make_batches(n, vocab):
    ids = torch.randint(0, vocab, (n, SEQ_LEN))
    labels = ids.clone()
    labels[:, : SEQ_LEN // 2] = -100
    return DataLoader(TensorDataset(ids, labels), batch_size=BATCH_SIZE, shuffle=True)


config = GPT2Config(n_embd=1280, n_layer=16, n_head=20)
lm = GPT2LMHeadModel(config).to(device)
lm.config.use_cache = False
lm.eval()

prompt = SoftPrompt(lm.get_input_embeddings(), N_TOKENS).to(device)

# only the prompt is trained
optimizer = torch.optim.AdamW(prompt.parameters(), lr=0.3, weight_decay=0.0)
scheduler = get_linear_schedule_with_warmup(optimizer, 2, MAX_STEPS)

loader = make_batches(BATCH_SIZE * MAX_STEPS, config.vocab_size)
pad = torch.full((BATCH_SIZE, N_TOKENS), -100, device=device)

for step, (ids, labels) in enumerate(loader):
    ids, labels = ids.to(device), labels.to(device)
    embeds = prompt(lm.get_input_embeddings()(ids))
    out = lm(inputs_embeds=embeds, labels=torch.cat([pad, labels], dim=1))
    out.loss.backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    if step % 5 == 0:
        print(f'step {step} loss {out.loss.item():.4f} lr {scheduler.get_last_lr()[0]:.4f}')

torch.save(prompt.state_dict(), '/tmp/soft_prompt.pt')
print('saved the prompt')
