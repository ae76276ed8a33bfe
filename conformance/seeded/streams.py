"""Streams and private pools, which do not share what they have cached."""

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import at_failure, free_in_private_pools, free_of_stream, note
from zoo import Decoder, ImageNet


def prepared_aside(width=64, batch=32, size=64, large=512, copies=6, steps=6):
    """Pictures are prepared on a stream of their own; what that took stays with the stream."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            raw = [images(batch, large) for _ in range(copies)]
            small = torch.stack([torch.nn.functional.interpolate(part, size) for part in raw]).mean(0)
        del raw, small
    torch.cuda.current_stream().wait_stream(side)
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))
        kept = free_of_stream(side)
        note(min(kept, torch.cuda.memory_reserved() - kept))  # what both have room for


def two_models(width=768, depth=8, batch=8, length=512, steps=5):
    """Two models take turns, each on its stream, and never need memory at once."""
    models = [Decoder(width, depth).cuda() for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(steps):
        for model, optimizer, stream in zip(models, optimizers, streams):
            with torch.cuda.stream(stream):
                train_step(model, optimizer, tokens(batch, length))
            stream.synchronize()
        note(min(free_of_stream(stream) for stream in streams))


def prefetched(width=32, batch=64, size=224, steps=12):
    """The loader's stream copies ahead; record_stream delays the reuse of what was used."""
    loader = torch.cuda.Stream()
    model = ImageNet(width, stages=3).cuda()
    for _ in range(steps):
        with torch.cuda.stream(loader):
            pictures = torch.cat([images(batch, size) for _ in range(6)])
        torch.cuda.current_stream().wait_stream(loader)
        pictures.record_stream(torch.cuda.current_stream())
        with torch.no_grad():
            model(pictures[:batch]).mean()
        stats = torch.cuda.memory_stats()
        note(stats["active_bytes.all.current"] - stats["allocated_bytes.all.current"])
        del pictures


def graph_of_each_size(width=1024, depth=6, sizes=6, batch=8, length=256):
    """A CUDA graph for each size of batch, each with a pool of its own."""
    model = Decoder(width, depth).cuda().eval()
    graphs = []
    with torch.no_grad():
        for i in range(sizes):
            ids = torch.zeros(batch * (i + 1), length, dtype=torch.long, device="cuda")
            model(ids)
            torch.cuda.empty_cache()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = model(ids)
            graphs.append((graph, ids, out))
            note(free_in_private_pools(beside_the_largest=True))  # one pool for all would be as large as that
        for graph, _, _ in graphs:
            graph.replay()


def graph_beside_training(width=96, batch=64, size=96, steps=6):
    """A captured evaluation keeps its pool while the training around it runs out."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pictures = images(batch, size)
    with torch.no_grad():
        model.eval()(pictures)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(pictures)
    with at_failure(free_in_private_pools):
        note(free_in_private_pools())
        for _ in range(steps):
            classify_step(model.train(), optimizer, images(batch // 2, size), labels(batch // 2))
            graph.replay()


if __name__ == "__main__":
    main(globals())
