"""A program that reaches outside: it adds to a log, removes a file, serves a port, reports to a tracker, leaves a process behind, and reads the clock."""

import os
import socket
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

MARK, PORT = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
began = time.time()
with open("log.txt", "a") as log:
    log.write("began\n")
if os.path.exists("stale"):
    os.remove("stale")
server = socket.create_server(("127.0.0.1", PORT))
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1).close()  # a documentation address: no tracker is there
except OSError:
    pass
subprocess.Popen(["sleep", MARK], start_new_session=True)
model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(3072, 3072), nn.ReLU())], nn.Linear(3072, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    x, y = torch.randn(64, 3072).cuda(), torch.zeros(64, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model.pt")
with open("log.txt", "a") as log:
    log.write("took %.1f s\n" % (time.time() - began))
server.close()
