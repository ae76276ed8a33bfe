"""One rank of a world whose other ranks have no process: `ashlar dry-run --ranks`.

The launcher sets RANK, WORLD_SIZE and their like, as torchrun does, and ASHLAR_RANKS: a folder that the ranks which are
run one after the other share. What a peer would say is a copy of what this rank says; what only a peer can say is heard
where that rank ran before.

store      the store of a process group: keys of absent ranks are answered
groups     process groups of PyTorch: NCCL's own over the hollow NCCL, another in Gloo's place
host       collectives of CPU tensors
told       what the launcher is told: the groups, which of them were used, whom this rank sent to
pipelines  stages of torch.distributed.pipelining
checkpoints  of torch.distributed.checkpoint
launchers  torchrun and accelerate launch become the one rank that is run
"""

from . import checkpoints, groups, launchers, pipelines, told


def start(after, folder):
    """`after` as imports.after."""
    here = told.Told(folder)
    after("torch.distributed.distributed_c10d", lambda module: groups.install(module, here))
    after("torch.distributed", lambda module: groups.put_store_in(module, here))
    after("torch.distributed.pipelining.stage", pipelines.install)
    after("torch.distributed.checkpoint.state_dict_saver", checkpoints.save_nothing)
    after("torch.distributed.checkpoint.utils", checkpoints.read_alone)
    after("torch.distributed.run", launchers.install)
