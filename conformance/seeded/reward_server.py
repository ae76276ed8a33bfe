"""Policy optimisation with a reward model that a second program serves on the same card."""
import subprocess
import sys
import torch
from note import at_failure
from loop import main, language_loss, tokens
from zoo import Decoder

SERVER = """
import sys, torch
w = [torch.empty(256 << 20, dtype=torch.uint8, device='cuda') for _ in range(int(sys.argv[1]))]
print('ready', flush=True)
sys.stdin.readline()
"""


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def rlhf(shards=16, steps=4):
    torch.zeros(1, device="cuda")
    own = used() - torch.cuda.memory_reserved()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(shards)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    try:
        with at_failure(lambda: used() - torch.cuda.memory_reserved() - own):
            net = Decoder(width=768, depth=8).cuda()
            opt = torch.optim.AdamW(net.parameters(), 1e-5)
            for _ in range(steps):
                ids = tokens(16, 512)
                language_loss(net(ids), ids).backward()
                opt.step()
                opt.zero_grad()
    finally:
        server.stdin.close()
        server.wait()


if __name__ == "__main__":
    main(globals())
