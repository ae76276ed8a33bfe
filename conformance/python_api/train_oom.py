"""A training that outgrows its device: each step keeps its loss with the graph. argv: how it ends.

    dies      in the main thread
    caught    the program handles it and goes on
    thread    in a thread
    backward  in the backward pass, which is a thread of autograd's
"""
import ashlar_gpu

ashlar_gpu.on_oom()

import sys  # noqa: E402
import threading  # noqa: E402

import torch  # noqa: E402


class Big(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient + torch.empty(8 << 30, dtype=torch.uint8, device="cuda").sum()


def train(steps=100):
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(steps):
        loss = model(torch.randn(4096, 2048, device="cuda")).square().mean()
        losses.append(loss)
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()


def main(how):
    if how == "caught":
        try:
            train()
        except torch.cuda.OutOfMemoryError:
            print("handled")
    elif how == "thread":
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
    elif how == "backward":
        Big.apply(torch.ones(4, device="cuda", requires_grad=True)).sum().backward()
    else:
        train()


if __name__ == "__main__":
    main(sys.argv[1])
