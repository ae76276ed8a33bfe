"""A checkpoint that is alive twice while it is loaded."""

import os
import tempfile

import torch
from loop import main, tokens
from note import note, size_of_model
from zoo import Decoder


def onto_the_device(width=1536, depth=8, batch=1, length=64):
    """torch.load puts every weight on the device, beside the model that waits for it."""
    model = Decoder(width, depth).bfloat16()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.pt")
        torch.save(model.state_dict(), path)
        model.cuda().eval()
        note(size_of_model(model))
        model.load_state_dict(torch.load(path, map_location="cuda"))
    with torch.no_grad():
        for _ in range(4):
            model(tokens(batch, length))


if __name__ == "__main__":
    main(globals())
