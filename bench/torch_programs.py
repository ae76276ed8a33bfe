"""Ten programs of PyTorch, as users write them: what bench/torch_allocators.py runs. Each is a generator that gives one value
a step, on the device. Lengths and data come from seeds, so that each run asks for the same memory.

    for loss in PROGRAMS["bert"](torch): ...
"""


def lengths(torch, steps, low, high, seed):
    generator = torch.Generator().manual_seed(seed)
    return [int(torch.randint(low, high + 1, (1,), generator=generator)) for _ in range(steps)]


def tokens(torch, batch, length, words):
    return torch.randint(100, words, (batch, length)).cuda()


def trained(torch, model, losses_of, **of_optimizer):
    """A step a loss: backward, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **of_optimizer)
    for loss in losses_of(model):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()


def bert(torch):
    """BERT of 12 layers, AdamW, sequences of 64 to 512 tokens."""
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig(attn_implementation="eager")).cuda().train()

    def losses(model):
        for length in lengths(torch, 24, 64, 512, 2):
            ids = tokens(torch, 4, length, 30522)
            yield model(input_ids=ids, labels=ids).loss

    return trained(torch, model, losses)


def gpt2_amp(torch):
    """GPT-2 with autocast to bfloat16, 128 to 1,024 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda().train()

    def losses(model):
        for length in lengths(torch, 24, 128, 1024, 3):
            ids = tokens(torch, 3, length, 50257)
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(input_ids=ids, labels=ids).loss
            yield loss

    return trained(torch, model, losses)


def llama_checkpointing(torch):
    """A Llama of 8 layers in bfloat16 with gradient checkpointing, 128 to 1,024 tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    def losses(model):
        for length in lengths(torch, 20, 128, 1024, 4):
            ids = tokens(torch, 4, length, 32000)
            yield model(input_ids=ids, labels=ids).loss

    return trained(torch, model, losses)


def llama_generate(torch):
    """Generation with a cache that grows by concatenation, prompts and batches of other sizes."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16).eval()
    for step, length in enumerate(lengths(torch, 10, 256, 1800, 5)):
        prompt = tokens(torch, 4 + step % 5, length, 32000)
        with torch.inference_mode():
            out = model.generate(prompt, max_new_tokens=24, do_sample=False, pad_token_id=0)
        yield out.double().sum()


def resnet50(torch):
    """ResNet-50, SGD, pictures of five sizes and a last batch that is not full."""
    from torchvision.models import resnet50 as make

    model = make().cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(24):
        side, batch = (160, 192, 224, 256, 288)[step * 7 % 5], 9 if step % 8 == 7 else 16
        images, labels = torch.randn(batch, 3, side, side).cuda(), torch.randint(0, 1000, (batch,)).cuda()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach()


def two_streams(torch):
    """Batches are prepared on a stream of their own, one ahead."""
    side = torch.cuda.Stream()
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU()) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def prepared(rows):
        with torch.cuda.stream(side):
            batch = torch.randn(rows, 2048).cuda(non_blocking=True)
            return (batch - batch.mean(0)) / (batch.std(0) + 1e-5)

    sizes = lengths(torch, 30, 1024, 8192, 6)
    ahead = prepared(sizes[0])
    for rows in sizes[1:] + sizes[:1]:
        torch.cuda.current_stream().wait_stream(side)
        batch = ahead
        batch.record_stream(torch.cuda.current_stream())
        ahead = prepared(rows)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.detach()


def experts(torch):
    """A mixture of eight experts: how much each gets differs from step to step. It is drawn on the host: over a hollow device no
    kernel writes what a gate prefers."""
    width, count = 1024, 8
    layers = torch.nn.ModuleList([torch.nn.ModuleList(
        [torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
         for _ in range(count)]) for _ in range(3)]).cuda()
    gates = torch.nn.ModuleList([torch.nn.Linear(width, count) for _ in range(3)]).cuda()
    model = torch.nn.ModuleList([layers, gates])
    draws = torch.Generator().manual_seed(11)

    def losses(_):
        for rows in lengths(torch, 20, 2048, 12288, 7):
            at = torch.randn(rows, width).cuda()
            for of_layer, gate in zip(layers, gates):
                chosen = torch.multinomial(torch.rand(count, generator=draws), rows, True, generator=draws)
                weight = gate(at).softmax(-1).gather(1, chosen.cuda()[:, None])
                out = torch.zeros_like(at)
                for number, expert in enumerate(of_layer):
                    where = (chosen == number).nonzero().squeeze(1).cuda()
                    if len(where):
                        out = out.index_copy(0, where, expert(at[where]) * weight[where])
                at = at + out
            yield at.square().mean()

    return trained(torch, model, losses)


def evaluates(torch):
    """Every fourth step of training is followed by an evaluation with a larger batch and other lengths."""
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=8)).cuda().train()

    def losses(model):
        for step, length in enumerate(lengths(torch, 20, 96, 384, 8)):
            if step % 4 == 3:
                model.eval()
                with torch.no_grad():
                    model(input_ids=tokens(torch, 96, 512 - 16 * step, 30522))
                model.train()
            ids = tokens(torch, 16, length, 30522)
            yield model(input_ids=ids, labels=torch.zeros(16, dtype=torch.long, device="cuda")).loss

    return trained(torch, model, losses)


def embedding(torch):
    """A table of 600,000 rows, gradients and AdamW's states of its size, bags of other lengths."""
    table = torch.nn.Embedding(600_000, 64)
    head = torch.nn.Linear(64, 1)
    model = torch.nn.Sequential(table, head).cuda()

    def losses(model):
        for length in lengths(torch, 20, 64, 2048, 9):
            yield model(torch.randint(0, 600_000, (128, length)).cuda()).square().mean()

    return trained(torch, model, losses, foreach=False)


def lstm(torch):
    """A language model of three LSTM layers, sequences of 20 to 400."""
    embedding_of, layers, head = torch.nn.Embedding(20_000, 512), torch.nn.LSTM(512, 1024, 3), torch.nn.Linear(1024, 20_000)
    model = torch.nn.ModuleList([embedding_of, layers, head]).cuda()

    def losses(_):
        for length in lengths(torch, 24, 20, 400, 10):
            ids = torch.randint(0, 20_000, (length, 24)).cuda()
            out, _ = layers(embedding_of(ids))
            yield torch.nn.functional.cross_entropy(head(out).flatten(0, 1), ids.flatten())

    return trained(torch, model, losses)


PROGRAMS = {made.__name__: made for made in (bert, gpt2_amp, llama_checkpointing, llama_generate, resnet50, two_streams,
                                             experts, evaluates, embedding, lstm)}
