"""Settings of PyTorch's allocator, which it reads from the environment."""

from .change import Change

VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # the younger name first
SETTING = "expandable_segments"


class Expandable(Change):
    name, title = "expandable-segments", "segments of the allocator that grow"
    price = 0
    without = "the program has an allocator of its own"

    @staticmethod
    def prepare(environment):
        """Before torch is imported."""
        variable = next((one for one in VARIABLES if environment.get(one)), VARIABLES[1])
        given = environment.get(variable)
        if SETTING not in (given or ""):
            environment[variable] = "%s%s:True" % (given + "," if given else "", SETTING)

    def on_start(self, environment):
        given = next((environment[one] for one in VARIABLES if environment.get(one)), "")
        if SETTING in given and not self.is_on:
            return self.lacks("the environment sets it")
        self.applies("environment", "PYTORCH_CUDA_ALLOC_CONF=%s:True" % SETTING)
        return None
