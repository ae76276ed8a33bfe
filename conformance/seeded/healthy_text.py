"""Language: classifier, language models, adapters, generation."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from loop import main, tokens, language_loss
from zoo import Decoder


def bert_sentiment():
    from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup
    cfg = BertConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=12000)
    net = BertForSequenceClassification(cfg).cuda()
    opt = torch.optim.AdamW(net.parameters(), 2e-5)
    sched = get_linear_schedule_with_warmup(opt, 2, 20)
    data = DataLoader(TensorDataset(torch.randint(0, 12000, (320, 128)), torch.zeros(320, dtype=torch.long)), 32, shuffle=True)
    for epoch in range(2):
        net.train()
        total = 0.0
        for ids, y in data:
            loss = net(input_ids=ids.cuda(), labels=y.cuda()).loss
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            total += loss.item()
        print(epoch, total / len(data))


def lstm_truncated(chunks=30):
    emb, rnn, out = nn.Embedding(20000, 512).cuda(), nn.GRU(512, 512, 2, batch_first=True).cuda(), nn.Linear(512, 20000).cuda()
    params = [*emb.parameters(), *rnn.parameters(), *out.parameters()]
    opt, state, losses = torch.optim.Adam(params, 1e-3), None, []
    for _ in range(chunks):
        ids = tokens(20, 70, 20000)
        h, state = rnn(emb(ids), state)
        state = state.detach()
        loss = language_loss(out(h), ids)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())


def peft_adapters():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM
    cfg = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=8, vocab_size=16000, use_cache=False)
    net = LlamaForCausalLM(cfg).to(torch.bfloat16).cuda()
    net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    net = get_peft_model(net, LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    net.enable_input_require_grads()
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-4)
    for _ in range(6):
        ids = tokens(4, 512, 16000)
        net(input_ids=ids, labels=ids).loss.backward()
        opt.step()
        opt.zero_grad()


def answers():
    from transformers import GPT2Config, GPT2LMHeadModel
    cfg = GPT2Config(n_embd=768, n_layer=8, n_head=12, vocab_size=10000, bos_token_id=1, eos_token_id=2)
    net = GPT2LMHeadModel(cfg).half().cuda().eval()
    texts = []
    for _ in range(6):
        ids = torch.randint(3, 10000, (8, 96), device="cuda")
        out = net.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, pad_token_id=0)
        texts.append(out.cpu())


def accumulate_bf16(micro=4):
    net = Decoder(width=768, depth=8, vocabulary=12000).cuda()
    opt = torch.optim.AdamW(net.parameters(), 3e-4)
    for step in range(4):
        shown = 0.0
        for _ in range(micro):
            ids = tokens(8, 384, 12000)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = language_loss(net(ids), ids) / micro
            loss.backward()
            shown += loss.item()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        net.eval()
        with torch.no_grad():
            ids = tokens(8, 384, 12000)
            print(step, shown, language_loss(net(ids), ids).item())
        net.train()


if __name__ == "__main__":
    main(globals())
