"""The peaks of a process by device, in bytes, whether or not the program resets PyTorch's own.

An allocator that has no statistics leaves none here, and the program goes on.
Thread rule: any thread.
"""


class Peaks(object):
    def __init__(self, torch):
        self.torch = torch
        self.is_watching = False
        self.kept = {}  # device -> (allocated, reserved), of before the last reset

    def watch_resets(self):
        torch, original = self.torch, getattr(self.torch._C, "_cuda_resetPeakMemoryStats", None)
        if original is None or self.is_watching:
            return
        self.is_watching = True

        def _cuda_resetPeakMemoryStats(device):
            self.keep(device)
            return original(device)

        torch._C._cuda_resetPeakMemoryStats = _cuda_resetPeakMemoryStats

    def _count(self):
        try:
            return self.torch.cuda.device_count()
        except Exception:
            return 0

    def _statistics(self, device):
        try:
            return self.torch.cuda.memory_stats(device)
        except Exception:
            return {}

    def keep(self, device):
        stats = self._statistics(device)
        before = self.kept.get(device, (0, 0))
        self.kept[device] = tuple(max(b, stats.get(key, 0)) for b, key in zip(before, _KEYS))

    def devices(self):
        """Those that the process allocated on, or that refused it memory."""
        told = []
        for device in range(self._count()):
            stats = self._statistics(device)
            self.keep(device)
            allocated, reserved = self.kept[device]
            ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
            if reserved or ooms:
                told.append(
                    {
                        "index": device,
                        "peak_allocated": allocated,
                        "peak_reserved": reserved,
                        "num_ooms": ooms,
                        "num_alloc_retries": retries,
                    }
                )
        return told


_KEYS = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
