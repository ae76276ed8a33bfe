"""Decodes a trace with the classes of the package perfetto, checks that it fits together, and prints what is in it.

    perfetto.py TRACE      {"counters": {"allocated": [most, last]}, "slices": {"steps": 12}, "instants": ["..."]}
"""
import collections
import json
import sys

sys.path.pop(0)  # this file has the package's name
from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: E402
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos  # noqa: E402


def has_unknown(message):
    if len(UnknownFieldSet(message)):
        return True
    children = [value for field, value in message.ListFields() if field.message_type is not None]
    flat = [item for child in children for item in (child if hasattr(child, '__len__') else [child])]
    return any(has_unknown(item) for item in flat)


def main():
    trace = protos.Trace()
    with open(sys.argv[1], 'rb') as file:
        trace.ParseFromString(file.read())
    tracks, last_time, depth = {}, {}, collections.Counter()
    counters, slices, instants = collections.defaultdict(list), collections.Counter(), []
    for packet in trace.packet:
        assert not has_unknown(packet), 'a field that the schema does not have'
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField('track_descriptor'):
            track = packet.track_descriptor
            assert track.uuid not in tracks and (track.parent_uuid == 0 or track.parent_uuid in tracks)
            tracks[track.uuid] = track
            continue
        event = packet.track_event
        track = tracks[event.track_uuid]
        assert packet.timestamp >= last_time.get(track.uuid, 0), f'{track.name} goes backwards'
        last_time[track.uuid] = packet.timestamp
        if event.type == event.TYPE_COUNTER:
            assert track.counter.unit == track.counter.UNIT_SIZE_BYTES
            counters[track.name].append(event.counter_value)
        elif event.type == event.TYPE_SLICE_BEGIN:
            depth[track.uuid] += 1
            slices[track.name.rstrip(' 0123456789')] += 1
        elif event.type == event.TYPE_SLICE_END:
            depth[track.uuid] -= 1
            assert depth[track.uuid] >= 0, f'{track.name} ends more than began'
        else:
            instants.append(event.name)
    assert not any(depth.values()), 'slices without an end'
    print(json.dumps({'counters': {name: [max(values), values[-1]] for name, values in counters.items()},
                      'slices': slices, 'instants': instants, 'packets': len(trace.packet)}))


main()
