"""An inference host that reads its weights at the start of each deployment."""
import os
import tempfile
import torch
from transformers import GPT2Config, GPT2LMHeadModel
from note import at_failure, size_of
from loop import main


class Host:
    def __init__(self, folder):
        self.folder, self.net, self.weights = folder, None, {}

    def prepare(self, cfg):
        net = GPT2LMHeadModel(cfg)
        torch.save(net.state_dict(), os.path.join(self.folder, "w.bin"))
        self.net = net.half().cuda()

    def deploy(self):
        self.weights = torch.load(os.path.join(self.folder, "w.bin"), map_location=torch.device("cuda:0"))
        self.net.load_state_dict(self.weights)

    def held(self):
        half = sum(p.numel() for p in self.net.parameters()) * 4
        blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["state"] == "active_allocated"]
        return sum(b["requested_size"] for b in blocks) - half // 2

    @torch.inference_mode()
    def answer(self):
        return self.net(torch.ones(4, 128, dtype=torch.long, device="cuda")).logits[:, -1].argmax(-1)


def deploy_twice():
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder)
        host.prepare(GPT2Config(n_embd=1024, n_layer=14, n_head=16, vocab_size=8000))
        with at_failure(host.held):
            host.deploy()
            for _ in range(3):
                host.answer()


if __name__ == "__main__":
    main(globals())
