# extract clip-like patch features of a video folder, later used for retrieval
import time
import torch
import torch.nn as nn


def patch_model(dim=768, depth=6):
    enc = nn.TransformerEncoderLayer(dim, 12, 4 * dim, batch_first=True, norm_first=True)
    return nn.ModuleDict({"patch": nn.Conv2d(3, dim, 32, 32), "enc": nn.TransformerEncoder(enc, depth, enable_nested_tensor=False)})


def frames(n_videos, per_video=1024):
    for v in range(n_videos):
        yield f"video_{v:05d}.mp4", torch.empty(per_video, 3, 224, 224, dtype=torch.uint8)


def normalize(stream, device):
    mean = torch.tensor([0.48, 0.46, 0.41], device=device)[None, :, None, None]
    for name, clip in stream:
        yield name, (clip.to(device).float() / 255 - mean) / 0.27


def encode(stream, model):
    for name, x in stream:
        t = model["patch"](x).flatten(2).transpose(1, 2)
        yield name, model["enc"](t)


@torch.no_grad()
def main():
    model = patch_model().cuda().eval()
    names, feats = [], []
    start = time.time()
    for i, (name, f) in enumerate(encode(normalize(frames(200), "cuda"), model)):
        names.append(name)
        feats.append(f)
        if i % 20 == 0:
            print(f"{i} videos, {time.time() - start:.1f}s", flush=True)
    table = torch.cat(feats).half()
    # torch.save({"names": names, "feats": table}, "features.pt")
    print(table.shape)


main()
