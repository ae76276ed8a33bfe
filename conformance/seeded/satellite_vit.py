"""Fine-tuning of a vision transformer on larger tiles than it was made for."""
import torch
import torch.nn.functional as F
from torchvision.models.vision_transformer import VisionTransformer
from note import at_failure, over, allocated
from loop import main


def finetune(batch=128, side=224):
    vit = VisionTransformer(image_size=side, patch_size=14, num_layers=12, num_heads=8, hidden_dim=512, mlp_dim=2048, num_classes=45).cuda()
    opt = torch.optim.SGD(vit.parameters(), 1e-3)
    base = allocated()
    with at_failure(over(base + batch * 3 * side * side * 4)):
        for _ in range(3):
            x, y = torch.randn(batch, 3, side, side, device="cuda"), torch.randint(0, 45, (batch,), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(vit(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main(globals())
