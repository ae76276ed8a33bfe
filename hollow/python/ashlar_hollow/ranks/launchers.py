"""torchrun, `python -m torch.distributed.run` and `accelerate launch` become the one rank that is run.

Each reads its own arguments and comes to torch.distributed.run.run, which would start a process for each rank. Here the
process itself becomes the script, with the variables of its rank that the launcher of the dry run set.
"""

import os
import sys


def install(run_module):
    def run(args):
        _, command, arguments = run_module.config_from_args(args)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it for several processes
        if callable(command):  # --run-path
            return command(*arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execvp(command, [command] + [str(one) for one in arguments])

    run_module.run = run
