"""Process groups of one rank among absent ones, in torch.distributed.distributed_c10d.

The default group's store is ours, whatever the program asked to meet by. NCCL's groups are PyTorch's own, over the hollow
NCCL, which knows that the peers are absent: buffers, streams and communicators are those of a run with peers. Gloo's are
another's (host). A group that is split off a communicator would ask the peers for their colors: it is made by its ranks.
"""

import functools

from . import host, store


def install(c10d, told):
    if not hasattr(c10d, "Store"):
        return  # a build without torch.distributed
    told.store_class = store.store_class(c10d, told)
    c10d.rendezvous = _rendezvous(told)
    _tell_groups(c10d, told)
    _make_groups_by_ranks(c10d, told)
    if hasattr(c10d, "ProcessGroupGloo"):
        from torch._C._distributed_c10d import FakeProcessGroup

        c10d.ProcessGroupGloo = host.gloo_class(c10d.ProcessGroupGloo, FakeProcessGroup)
    host.Host(c10d, told).install()


def put_store_in(distributed, told):
    """A store that the program makes by itself would wait for its peers as well."""
    for name in ("TCPStore", "FileStore"):
        if hasattr(distributed, name) and hasattr(told, "store_class"):
            setattr(distributed, name, told.store_class)


def _rendezvous(told):
    def rendezvous(url, rank=-1, world_size=-1, **_):
        yield (told.store_class(), rank if rank >= 0 else told.rank, world_size if world_size > 0 else told.world)

    return rendezvous


def _tell_groups(c10d, told):
    original = c10d._new_process_group_helper

    @functools.wraps(original)
    def helper(group_size, group_rank, global_ranks_in_group, backend, store, group_name, *args, **kwargs):
        told.group(group_name, global_ranks_in_group)
        return original(group_size, group_rank, global_ranks_in_group, backend, store, group_name, *args, **kwargs)

    c10d._new_process_group_helper = helper


def _make_groups_by_ranks(c10d, told):
    if hasattr(c10d, "_get_split_source"):
        c10d._get_split_source = lambda pg: None
    if not hasattr(c10d, "split_group"):
        return

    def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
        parent = parent_pg or c10d._get_default_group()
        of_world = c10d.get_process_group_ranks(parent)
        splits = [[of_world[rank] for rank in split] for split in split_ranks or []]
        mine = c10d.GroupMember.NON_GROUP_MEMBER
        for ranks in splits:
            told.group("split of %s: %s" % (parent.group_name, ranks), ranks)
            if told.rank in ranks:
                mine = c10d.new_group(ranks, timeout=timeout, backend=backend or c10d._world.pg_map[parent][0],
                                      pg_options=pg_options, use_local_synchronization=True, group_desc=group_desc)
        return mine

    c10d.split_group = split_group
