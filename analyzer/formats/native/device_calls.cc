#include "analyzer/formats/native/device_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::formats {
namespace {

// Whether [offset, end) has a part in common with one of the parts.
bool Overlaps(const std::map<std::uint64_t, std::uint64_t>& parts, std::uint64_t offset, std::uint64_t end) {
  auto it = parts.lower_bound(end);
  return it != parts.begin() && (--it)->second > offset;
}

bool IsRange(std::uint64_t from, std::uint64_t bytes) { return bytes > 0 && from + bytes > from; }

}  // namespace

void LoggedCalls::Note(absl::string_view name, absl::string_view message, std::uint64_t count) {
  if (count == 0) return;
  trace::Note& note = notes_.try_emplace(std::string(name), trace::Note{std::string(name), {}, 0}).first->second;
  note.message = std::string(message);
  note.count += count;
}

void LoggedCalls::Add(const DeviceCall& call, trace::Action action, std::uint64_t address, std::uint64_t bytes,
                      Stream stream) {
  const auto device = static_cast<std::size_t>(call.device);
  if (traces_.size() <= device) traces_.resize(device + 1, Trace{trace::TraceTail(max_events_)});
  trace::Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = bytes;
  event.stream = stream;
  event.time_us = call.time_us;
  event.stack = call.stack;
  Trace& to = traces_[device];
  to.events.push_back(event);
  if (const std::size_t count = to.tail.TooMany(to.events); count > 0) to.tail.Drop(count, to.events);
}

void LoggedCalls::Allocate(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes, Stream stream) {
  if (call.device < 0 || call.device >= kMostDevices || !IsRange(address, bytes)) {
    return Note("impossible_rows", "rows that say what cannot be: left out");
  }
  CatchUpWithReset(call);
  GiveOverlapping(call, address, bytes);
  Add(call, trace::Action::kSegmentAlloc, address, bytes, stream);
  Add(call, trace::Action::kAlloc, address, bytes, stream);
  live_[address] = {call.device, bytes, stream, call.stack};
  held_[call.device] += bytes;
}

// The log lost a free, or the memory went with a context.
void LoggedCalls::GiveOverlapping(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes) {
  for (auto it = live_.lower_bound(address + bytes); it != live_.begin();) {
    --it;
    if (it->first + it->second.bytes <= address) return;
    Note("unseen_frees", "allocations whose free is not in the log, taken as freed where another one took their place");
    const auto next = std::next(it);
    Give(call, it);
    it = next;
  }
}

void LoggedCalls::Give(const DeviceCall& call, std::map<std::uint64_t, Allocation>::iterator it) {
  const Allocation& of = it->second;
  const DeviceCall on_its_device = {call.time_us, of.device, call.stack};
  Add(on_its_device, trace::Action::kFreeRequested, it->first, of.bytes, of.stream);
  Add(on_its_device, trace::Action::kFreeCompleted, it->first, of.bytes, of.stream);
  Add(on_its_device, trace::Action::kSegmentFree, it->first, of.bytes, of.stream);
  held_[of.device] -= of.bytes;
  live_.erase(it);
}

void LoggedCalls::InUse(int device, std::uint64_t bytes) {
  if (device < 0 || device >= kMostDevices) return Note("impossible_rows", "rows that say what cannot be: left out");
  const auto [usage, is_first] = in_use_.try_emplace(device);
  if (is_first || held_[device] >= usage->second.asked_bytes) usage->second = {bytes, held_[device]};
}

void LoggedCalls::Free(const DeviceCall& call, std::uint64_t address) {
  const auto it = live_.find(address);
  if (it == live_.end()) {
    return Note("unknown_frees", "frees of memory whose allocation is not in the log, left out");
  }
  Give(call, it);
}

void LoggedCalls::Fail(const DeviceCall& call, std::uint64_t bytes, std::uint64_t free_bytes, Stream stream) {
  if (call.device < 0 || call.device >= kMostDevices) {
    return Note("impossible_rows", "rows that say what cannot be: left out");
  }
  Add(call, trace::Action::kOom, free_bytes, bytes, stream);
}

void LoggedCalls::Create(const DeviceCall& call, std::uint64_t handle, std::uint64_t bytes) {
  handles_[handle] = objects_.size();
  objects_.push_back({call.device, bytes});
}

void LoggedCalls::Map(const DeviceCall& call, const Mapping& mapping) {
  const auto handle = handles_.find(mapping.handle);
  if (handle == handles_.end()) return Note("imported_memory", "maps of memory that others created: not counted here");
  Object& object = objects_[handle->second];
  const std::uint64_t end = mapping.offset + mapping.bytes;
  if (!IsRange(mapping.address, mapping.bytes) || !IsRange(mapping.offset, mapping.bytes) || end > object.bytes) {
    return Note("impossible_rows", "rows that say what cannot be: left out");
  }
  object.was_mapped = true;
  if (object.device == kHost) return Note("host_memory", "maps of the host's memory: not counted here");
  const bool is_counted = !Overlaps(object.mapped, mapping.offset, end);
  if (is_counted) {
    const DeviceCall on_its_device = {call.time_us, object.device, call.stack};
    Allocate(on_its_device, mapping.address, mapping.bytes, Stream{});
    object.mapped[mapping.offset] = end;
  } else {
    Note("mapped_again", "maps of memory that is mapped elsewhere at the time: counted once");
  }
  mapped_[mapping.address] = {mapping.address + mapping.bytes, is_counted, handle->second, mapping.offset};
}

void LoggedCalls::Unmap(const DeviceCall& call, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + std::min(bytes, ~address);
  for (auto it = mapped_.lower_bound(address); it != mapped_.end() && it->second.end <= end;) {
    if (it->second.is_counted) {
      Free(call, it->first);
      objects_[it->second.object].mapped.erase(it->second.offset);
    }
    it = mapped_.erase(it);
  }
}

void LoggedCalls::Reset(const DeviceCall& call) { resets_[call.device] = call; }

void LoggedCalls::CatchUpWithReset(const DeviceCall& call) {
  const auto reset = resets_.find(call.device);
  if (reset == resets_.end()) return;
  for (auto it = live_.begin(); it != live_.end();) {
    const auto next = std::next(it);
    if (it->second.device == call.device) Give(reset->second, it);
    it = next;
  }
  resets_.erase(reset);
}

void LoggedCalls::NoteObjects() {
  std::uint64_t count = 0, bytes = 0;
  for (const Object& object : objects_) {
    if (object.was_mapped || object.device == kHost) continue;
    ++count;
    bytes += object.bytes;
  }
  Note("never_mapped",
       absl::StrCat("pieces of memory that were created and never mapped, ", FormatBytes(bytes),
                    " in all: not counted here"),
       count);
}

void LoggedCalls::Finish(trace::Snapshot& out) {
  NoteObjects();
  for (const auto& reset : resets_) {
    const auto count = static_cast<std::uint64_t>(
        std::count_if(live_.begin(), live_.end(), [&](const auto& of) { return of.second.device == reset.first; }));
    Note("left_for_reset", "allocations that the program did not free: a reset of the device gave them back", count);
  }
  for (Trace& of : traces_) {
    of.tail.Drop(of.tail.Rest(of.events), of.events);
    out.device_traces.emplace_back(std::move(of.events));
  }
  for (const auto& [address, of] : live_) {
    trace::SnapshotSegment segment;
    segment.device = of.device;
    segment.address = address;
    segment.size_bytes = of.bytes;
    segment.stream = of.stream;
    segment.stack = of.stack;
    segment.blocks.push_back({address, of.bytes, of.bytes, trace::BlockState::kLive, of.stack});
    out.segments.push_back(std::move(segment));
  }
  std::stable_sort(out.segments.begin(), out.segments.end(),
                   [](const auto& a, const auto& b) { return a.device < b.device; });
  for (auto& [name, note] : notes_) out.notes.push_back(std::move(note));
  for (std::size_t device = 0; device < traces_.size(); ++device) {
    traces_[device].tail.Describe(out.device_traces[device], device, out);
  }
}

void DescribeDeviceCalls(absl::string_view origin, trace::Snapshot& out) {
  out.traits.has_stacks = out.stacks.stack_count() > 0;
  out.traits.has_requested_bytes = true;
  out.traits.has_settings = true;
  out.traits.generation = "device calls";
  std::map<std::string, std::string>& settings = out.settings.emplace().values;
  settings[trace::kDeviceCallsKey] = "True";
  if (!origin.empty()) settings[trace::kCallsOriginKey] = std::string(origin);
  for (const trace::Note& note : out.notes) {
    settings[absl::StrCat(trace::kDeviceCallsNote, note.name)] = absl::StrCat(note.count, " ", note.message);
  }
  out.notes.clear();
}

}  // namespace ashlar::formats
