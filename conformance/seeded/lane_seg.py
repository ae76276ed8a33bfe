import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision.models.segmentation import deeplabv3_resnet50

from lane_seg_lib import LaneScenes, MeterBoard


def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--height', type=int, default=192)
    p.add_argument('--width', type=int, default=384)
    p.add_argument('--classes', type=int, default=9)
    p.add_argument('--batch', type=int, default=4)
    p.add_argument('--epochs', type=int, default=2)
    p.add_argument('--lr', type=float, default=0.01)
    return p.parse_args()


def pixel_accuracy(logits, mask):
    return (logits.argmax(1) == mask).float().mean()


def consistency(model, plain, jittered_logits):
    """How far the answer for the plain view is from that for the jittered one. A monitor only."""
    logits = model(plain)['out']
    return F.kl_div(logits.log_softmax(1), jittered_logits.detach().softmax(1), reduction='batchmean')


def train_epoch(model, loader, optimizer, board, device, epoch):
    model.train()
    for step, (plain, jittered, mask) in enumerate(loader):
        plain = plain.to(device)
        jittered = jittered.to(device)
        mask = mask.to(device)

        logits = model(jittered)['out']
        loss = F.cross_entropy(logits, mask, ignore_index=255)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        board.log(
            len(plain),
            loss=loss.item(),
            acc=pixel_accuracy(logits, mask).item(),
            consist=consistency(model, plain, logits),
        )
        if step % 10 == 0:
            print(f'[{epoch}:{step}]', 'lr', optimizer.param_groups[0]['lr'], flush=True)


def main():
    args = parse()
    torch.manual_seed(0)
    device = 'cuda'
    model = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=args.classes).to(device)
    backbone = [p for p in model.backbone.parameters()]
    head = [p for p in model.classifier.parameters()]
    optimizer = torch.optim.SGD(
        [{'params': backbone, 'lr': args.lr / 10}, {'params': head}],
        lr=args.lr, momentum=0.9, weight_decay=1e-4)
    loader = DataLoader(LaneScenes(48, args.height, args.width, args.classes), args.batch, shuffle=True,
                        drop_last=True)
    for epoch in range(args.epochs):
        board = MeterBoard()
        train_epoch(model, loader, optimizer, board, device, epoch)
        print(f'epoch {epoch}', board)


if __name__ == '__main__':
    main()
