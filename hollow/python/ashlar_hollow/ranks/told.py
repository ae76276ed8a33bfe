"""What a rank tells the launcher, in the run folder's file ranks-PID.json:

    rank, world      of the default group; null: the program made none
    groups           the ranks of each group that was made, in order, also of those without this rank
    used             of these, the groups that a communicator of NCCL was made for
    peers            the ranks that this one sent to or received from, one by one
    paired           the groups by which it did so

It is written again whenever something is new, so that it is there however the process ends. Thread rule: any thread.
"""

import json
import os
import threading

from .. import settings

ID_PREFIX = b"ashlar-nccl-"  # of the hollow NCCL's unique ids


class Told(object):
    def __init__(self, folder):
        self.folder = folder  # that the ranks share
        self.rank = settings.number("RANK", 0)
        self.world = settings.number("WORLD_SIZE", 1)
        self.lock = threading.RLock()
        self.has_default = False
        self.by_name = {}  # group name -> ranks
        self.groups = []
        self.used = []
        self.peers = []
        self.paired = []

    def group(self, name, ranks):
        ranks = list(ranks) or list(range(self.world))
        with self.lock:
            self.has_default = True
            self.by_name[str(name)] = ranks
            self._add(self.groups, ranks)

    def ranks_of_key(self, key):
        """The ranks of the group that a key of the store belongs to: its name is a part of the key, before the last."""
        parts = [part for part in key.split("/") if part][:-1]
        with self.lock:
            for part in reversed(parts):
                if part in self.by_name:
                    return self.by_name[part]
        return list(range(self.world))

    def unique_id(self, key, value):
        """A value of the store: of a communicator's id, its group is used. Two ranks that send have one of their own."""
        if value.startswith(ID_PREFIX) and ":" not in key.rsplit("/", 1)[-1]:
            self._add(self.used, self.ranks_of_key(key))

    def pair(self, group, peer):
        """This rank sent to `peer` of the group's ranks, or received from it."""
        self._add(self.peers, peer)
        self._add(self.paired, group)

    def _add(self, items, item):
        with self.lock:
            if item not in items:
                items.append(item)
                self.write()

    def write(self):
        place = settings.record_folder()
        if place is None:
            return
        said = {"rank": self.rank if self.has_default else None, "world": self.world if self.has_default else None,
                "groups": self.groups, "used": self.used, "peers": self.peers, "paired": self.paired}
        path = os.path.join(place, "ranks-%d.json" % os.getpid())
        try:
            with open(path + ".part", "w") as out:
                json.dump(said, out)
            os.replace(path + ".part", path)
        except OSError:
            pass  # the launcher then says that it does not know the groups
