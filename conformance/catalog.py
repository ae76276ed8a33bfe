"""The programs of conformance/programs: how each is started, and what it must tell of itself.

`did`: of its line of JSON, key -> value, or a test of the value. `needs_values`: its way hangs on small values, so that
it cannot be run without them. `ranks`: started by torchrun, as many processes.
"""
import dataclasses


def torchrun(ranks):
    """What goes before a script of many ranks; nothing where `ranks` is 0."""
    return ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', str(ranks)] if ranks else []


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    arguments: tuple
    did: dict
    seconds: float = 12
    needs_values: bool = False
    ranks: int = 0
    what_if: bool = False  # one of those whose peaks under other settings are foretold

    def __hash__(self):
        return hash(self.name)

    def command(self):
        """The interpreter's arguments, in the folder of the programs."""
        return torchrun(self.ranks) + list(self.arguments)


def positive(value):
    return value > 0


LORA_WEIGHTS = 16 * (2048 + 2048) * 2 * 8  # rank times both sides, of two projections in each of 8 layers
PROGRAMS = [
    Program('values', ('values.py',), {'checks': 18}, 8, needs_values=True),
    Program('tracebacks', ('tracebacks.py',), {'checks': 16}, 30),
    Program('graphs', ('graphs.py',), {'private_pools': positive}, 10, what_if=True),
    Program('mempool', ('mempool.py',), {'segments_of_pool': positive}, 8),
    Program('oom', ('oom.py',), {'kept': positive, 'failures': 3}, 8),
    Program('workers', ('workers.py',), {'sum_of_first_column': 2 * sum(range(256))}, 25, needs_values=True),
    Program('scaler', ('scaler.py',), {'scale': 4 * 65536.0}, 9, what_if=True),
    Program('resnet50', ('resnet50.py',), {'batches_seen': 3}, 12, what_if=True),
    Program('generate', ('generate.py',), {'shape': [4, 272], 'prompt_kept': True}, 14, needs_values=True,
            what_if=True),
    Program('lora', ('lora.py',), {'trained': LORA_WEIGHTS}, 16, what_if=True),
    Program('lora bitsandbytes', ('lora.py', 'bitsandbytes'), {'trained': LORA_WEIGHTS}, 18, what_if=True),
    Program('gpt2_trainer', ('gpt2_trainer.py',), {'steps': 4}, 16, what_if=True),
    Program('gpt2_trainer checkpointing', ('gpt2_trainer.py', 'checkpointing'), {'steps': 4, 'checkpointing': True}, 16,
            what_if=True),
    Program('bert_trainer', ('bert_trainer.py',), {'steps': 3}, 16, needs_values=True, what_if=True),
    Program('vit_trainer', ('vit_trainer.py',), {'steps': 3}, 18, what_if=True),
    Program('compile', ('compile.py',), {'graphs': positive}, 60),
    Program('graph_trees', ('graph_trees.py',), {'graphs': positive}, 90),
    Program('emptied', ('emptied.py',), {'shape': [4, 256, 8192]}, 12, what_if=True),
    Program('ddp', ('ddp.py',), {'sum_of_ranks': 10.0}, 30, needs_values=True, ranks=4),
    Program('fsdp2', ('fsdp2.py',), {'world': 4}, 30, needs_values=True, ranks=4),
    Program('accelerated', ('accelerated.py',), {'updates': 2}, 30, needs_values=True, ranks=4),
]
