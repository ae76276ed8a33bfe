"""Programs with nothing to mend: they fit, and no setting makes them notably smaller."""

import copy

import torch
from generation import Static, generate
from loop import classify_step, images, labels, language_loss, main, tokens, train_step, update
from torch import nn
from torch.nn import functional
from torchvision.models import resnet18
from zoo import Decoder, ImageNet, adapters, mlp, with_lora


def decoder(width=512, depth=6, batch=8, length=512, steps=8):
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))


def checkpointed(width=1536, depth=8, batch=4, length=512, steps=6):
    model = Decoder(width, depth, checkpointing=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))


def accumulated(width=768, depth=8, batch=4, length=512, steps=4, parts=4):
    """Gradients of several small batches are summed, as they should be."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        for _ in range(parts):
            ids = tokens(batch, length)
            (language_loss(model(ids), ids) / parts).backward()
        optimizer.step()
        optimizer.zero_grad()


def mixed_precision(width=768, depth=8, batch=8, length=512, steps=6):
    model, scaler = Decoder(width, depth).cuda(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        ids = tokens(batch, length)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = language_loss(model(ids), ids)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def lora(width=1024, depth=8, batch=4, length=512, steps=6):
    model = Decoder(width, depth).requires_grad_(False)
    model = with_lora(model, 16).cuda()
    optimizer = torch.optim.AdamW(adapters(model))
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))


def image_net(width=64, batch=256, size=96, steps=8):
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))


def residual_net(batch=256, size=224, steps=6):
    model = resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))


def regression(width=2048, depth=8, batch=4096, steps=10):
    model = mlp(width, depth, inputs=64, outputs=1).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        wanted = torch.zeros(batch, 1).cuda()
        update(optimizer, functional.mse_loss(model(torch.randn(batch, 64, device="cuda")), wanted))


def trained_and_evaluated(width=512, depth=6, batch=8, length=512, epochs=2):
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        model.train()
        for _ in range(5):
            train_step(model, optimizer, tokens(batch, length))
        model.eval()
        total = 0.0
        with torch.no_grad():
            for _ in range(5):
                ids = tokens(batch, length)
                total += language_loss(model(ids), ids).item()


def generated(width=1024, depth=8, batch=8, prompt=128, new=60):
    model = Decoder(width, depth).half().cuda().eval()
    caches = [Static(batch, width // 64, prompt + new + 1, 64, torch.half) for _ in model.blocks]
    with torch.inference_mode():
        generate(model, tokens(batch, prompt), caches, new)


def adversarial(width=1024, batch=1024, steps=10):
    maker, judge = mlp(width, 5, inputs=128).cuda(), mlp(width, 5, outputs=1).cuda()
    of_maker, of_judge = (torch.optim.Adam(net.parameters(), lr=2e-4) for net in (maker, judge))
    for _ in range(steps):
        made = maker(torch.randn(batch, 128, device="cuda"))
        wrong = functional.softplus(judge(made.detach())) + functional.softplus(-judge(torch.randn_like(made)))
        update(of_judge, wrong.mean())
        update(of_maker, functional.softplus(-judge(made)).mean())


def policy_gradient(width=512, batch=256, steps=16, updates=4):
    policy = mlp(width, 4, inputs=64, outputs=8).cuda()
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(updates):
        chances = []
        for _ in range(steps):
            chances.append(policy(torch.randn(batch, 64, device="cuda")).log_softmax(-1).mean(1))
        update(optimizer, -torch.stack(chances).mean())


def small_teacher(width=768, depth=8, batch=8, length=256, steps=6):
    """Distillation, with the guide small beside what is trained."""
    student, guide = Decoder(width, depth).cuda(), Decoder(128, 2).cuda().eval()
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(steps):
        ids = tokens(batch, length)
        with torch.no_grad():
            wanted = guide(ids).argmax(-1)
        update(optimizer, language_loss(student(ids), wanted))


def averaged(width=64, batch=512, size=96, steps=8):
    """A moving average of weights that are little beside the activations."""
    model = ImageNet(width).cuda()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), model.parameters()):
                mine.lerp_(theirs, 0.01)


def autoencoder(width=64, batch=64, size=64, steps=8):
    down = [nn.Conv2d(3 if i == 0 else width << (i - 1), width << i, 4, 2, 1) for i in range(3)]
    up = [nn.ConvTranspose2d(width << i, 3 if i == 0 else width << (i - 1), 4, 2, 1) for i in (2, 1, 0)]
    model = nn.Sequential(*[part for layer in down + up for part in (layer, nn.ReLU())]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        pictures = images(batch, size)
        update(optimizer, functional.mse_loss(model(pictures), pictures))


def served(width=1024, depth=12, batch=4, length=256, requests=12):
    model = Decoder(width, depth, 32000).bfloat16().cuda().eval()
    with torch.inference_mode():
        for _ in range(requests):
            model(tokens(batch, length, 32000))[:, -1].argmax(-1).cpu()


def tiny(width=32, steps=20):
    model = mlp(width, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        update(optimizer, model(torch.randn(16, width, device="cuda")).pow(2).mean())


if __name__ == "__main__":
    main(globals())
