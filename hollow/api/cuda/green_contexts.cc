#include "hollow/api/cuda/green_contexts.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/objects.h"

namespace ashlar::hollow {
namespace {

// What a green context is made of: cuDevResourceGenerateDesc.
struct ResourceDescription {
  int device = 0;
  unsigned sm_count = 0;
};

constinit Objects<GreenContext> all_green_contexts(0x42);
constinit Objects<ResourceDescription> all_descriptions(0x43);

constexpr int kMultiprocessors = 1;  // CU_DEV_RESOURCE_TYPE_SM
constexpr unsigned kNonBlocking = 1;

struct PartRule {
  unsigned least, multiple;
};

// The guideline of cuda.h; without regard to clusters, the least that it has for any.
PartRule RuleOf(const Settings& settings, bool ignores_clusters) {
  if (settings.compute_major < 8 || (ignores_clusters && settings.compute_major >= 9)) return {2, 2};
  return settings.compute_major == 8 ? PartRule{4, 2} : PartRule{8, 8};
}

abi::DevResource ResourceOf(const Process& process, int device, unsigned sm_count) {
  const PartRule rule = RuleOf(process.settings, /*ignores_clusters=*/false);
  abi::DevResource out = {};
  out.type = kMultiprocessors;
  out.device = device;
  out.sm_count = sm_count;
  out.least_of_part = rule.least;
  out.multiple_of_part = rule.multiple;
  return out;
}

Error Fill(const Process& process, int device, unsigned sm_count, int kind, abi::DevResource* out) {
  if (out == nullptr) return Error::kInvalidValue;
  if (kind != kMultiprocessors) return Error::kInvalidResourceType;
  *out = ResourceOf(process, device, sm_count);
  return Error::kNone;
}

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> next = std::uint64_t{1} << 32;  // apart from those of other contexts
  return next.fetch_add(1);
}

// The streams that are still there; kCaptureUnsupported where one is captured, whose capture is invalid then.
Error StreamsOf(Process& process, const void* green, std::vector<void*>* out) {
  const GreenContext* found = GreenContextOf(green);
  if (found == nullptr) return Error::kInvalidContext;
  Error error = Error::kNone;
  for (void* handle : found->streams) {
    StreamModel* stream = process.streams.FindStream(handle);
    if (stream == nullptr || stream->green != green) continue;
    out->push_back(handle);
    if (stream->capture == nullptr) continue;
    stream->capture->is_valid = false;
    error = Error::kCaptureUnsupported;
  }
  return error;
}

// The same, taking the lock.
Error LockedStreamsOf(const void* green, std::vector<void*>* out) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return StreamsOf(process, green, out);
}

}  // namespace

GreenContext* GreenContextOf(const void* handle) { return all_green_contexts.Find(handle); }

bool IsWholeDevice(const void* handle) {
  const GreenContext* found = GreenContextOf(handle);
  return found != nullptr && found->is_whole;
}

void* GreenHandleOf(const StreamModel& stream) {
  return GreenContextOf(stream.green) == nullptr ? nullptr : stream.green;
}

Error GetDeviceResource(const Process& process, int device, int kind, abi::DevResource* out) {
  if (device < 0 || device >= process.settings.devices) return Error::kInvalidDevice;
  return Fill(process, device, static_cast<unsigned>(process.settings.sm_count), kind, out);
}

Error GetGreenResource(const Process& process, const void* green, int kind, abi::DevResource* out) {
  const GreenContext* found = GreenContextOf(green);
  if (found == nullptr) return Error::kInvalidContext;
  return Fill(process, found->device, found->sm_count, kind, out);
}

Error GetStreamResource(Process& process, const void* stream, int kind, abi::DevResource* out) {
  const StreamModel* found = StreamOf(process, stream);
  if (found == nullptr) return Error::kInvalidHandle;
  const void* green = GreenHandleOf(*found);
  return green != nullptr ? GetGreenResource(process, green, kind, out)
                          : GetDeviceResource(process, found->device, kind, out);
}

Error SplitByCount(const Process& process, abi::DevResource* parts, unsigned* count, const abi::DevResource* input,
                   abi::DevResource* remaining, unsigned flags, unsigned least) {
  constexpr unsigned kIgnoresClusters = 1, kKnownFlags = 3;
  static std::atomic<std::uint32_t> last_split = 0;
  if (count == nullptr || input == nullptr || (flags & ~kKnownFlags) != 0) return Error::kInvalidValue;
  if (input->type != kMultiprocessors) return Error::kInvalidResourceType;
  if (least > input->sm_count) return Error::kInvalidValue;
  if (input->split != 0) return Error::kInvalidResourceConfiguration;  // a part is split as a green context's
  const PartRule rule = RuleOf(process.settings, (flags & kIgnoresClusters) != 0);
  const unsigned size = std::max(rule.least, (least + rule.multiple - 1) / rule.multiple * rule.multiple);
  unsigned made = input->sm_count / size;
  if (made == 0) return Error::kInvalidResourceConfiguration;
  if (parts != nullptr) made = std::min(made, *count);
  *count = made;
  const std::uint32_t split = last_split.fetch_add(1) + 1;
  const auto part_of = [&](unsigned sm_count) {
    abi::DevResource out = ResourceOf(process, input->device, sm_count);
    out.split = split;
    out.multiple_of_part = rule.multiple;
    out.least_of_part = rule.least;
    return out;
  };
  const unsigned left = input->sm_count - made * size;
  if (parts != nullptr) std::fill_n(parts, made, part_of(size));
  if (remaining != nullptr) *remaining = left == 0 ? abi::DevResource{} : part_of(left);
  return Error::kNone;
}

Error DescribeResources(void** description, const abi::DevResource* resources, unsigned count) {
  if (description == nullptr || resources == nullptr || count == 0) return Error::kInvalidValue;
  unsigned sm_count = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != kMultiprocessors) return Error::kInvalidResourceType;
    const bool is_of_one_split =
        resources[i].device == resources->device && resources[i].split == resources->split && resources->split != 0;
    if (count > 1 && !is_of_one_split) return Error::kInvalidResourceConfiguration;
    sm_count += resources[i].sm_count;
  }
  *description = all_descriptions.Make(resources->device, sm_count);
  return Error::kNone;
}

Error MakeGreenContext(Process& process, void** green, const void* description, int device) {
  const ResourceDescription* found = all_descriptions.Find(description);
  if (green == nullptr || found == nullptr) return Error::kInvalidValue;
  if (device < 0 || device >= process.settings.devices) return Error::kInvalidDevice;
  if (found->device != device) return Error::kInvalidValue;
  if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
  *green = all_green_contexts.Make(device, found->sm_count, NextId(), false, std::vector<void*>(), nullptr);
  return Error::kNone;
}

Error DestroyGreenContext(Process& process, const void* green) {
  const GreenContext* found = GreenContextOf(green);
  if (found == nullptr || found->is_whole) return Error::kInvalidContext;
  const Error error = found->meeting == nullptr ? Error::kNone : DestroyStream(process, found->meeting);
  all_green_contexts.Destroy(green);
  return error;
}

Error GetWholeDevice(Process& process, void** green, int device) {
  static auto* whole = new std::map<int, void*>;
  if (green == nullptr) return Error::kInvalidValue;
  if (device < 0 || device >= process.settings.devices) return Error::kInvalidDevice;
  if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
  void*& handle = (*whole)[device];
  if (handle == nullptr) {
    handle = all_green_contexts.Make(device, static_cast<unsigned>(process.settings.sm_count), NextId(), true,
                                     std::vector<void*>(), nullptr);
  }
  *green = handle;
  return Error::kNone;
}

Error MakeGreenStream(Process& process, void** stream, const void* green, unsigned flags, int priority) {
  GreenContext* found = GreenContextOf(green);
  if (found == nullptr) return Error::kInvalidContext;
  const int before = CurrentDevice();
  CurrentDevice() = found->device;
  const Error error = CreateStream(process, found->is_whole ? flags : kNonBlocking, priority, stream);
  CurrentDevice() = before;
  if (error != Error::kNone || found->is_whole) return error;
  process.streams.FindStream(*stream)->green = const_cast<void*>(green);
  found->streams.push_back(*stream);
  return Error::kNone;
}

// The stream that its events are recorded on, and an event for each stream's work so far. With the lock held.
static Error MakeMeeting(Process& process, const void* green, void** mark) {
  GreenContext* found = GreenContextOf(green);
  if (found == nullptr) return Error::kInvalidContext;
  if (found->meeting == nullptr) {
    if (const Error error = MakeGreenStream(process, &found->meeting, green, kNonBlocking, 0); error != Error::kNone) {
      return error;
    }
    found->streams.pop_back();
  }
  constexpr unsigned kWithoutTime = 2;
  return CreateEvent(process, kWithoutTime, mark);
}

// A stream that nobody else has waits for what is so far on each.
Error RecordOfGreen(const void* green, void* event) {
  std::vector<void*> streams;
  if (IsWholeDevice(green)) return Error::kNotSupported;
  if (const Error error = LockedStreamsOf(green, &streams); error != Error::kNone) return error;
  Process& process = TheProcess();
  void *mark = nullptr, *meeting = nullptr;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    if (EventOf(process, event) == nullptr) return Error::kInvalidHandle;
    if (const Error error = MakeMeeting(process, green, &mark); error != Error::kNone) return error;
    meeting = GreenContextOf(green)->meeting;
  }
  Error error = Error::kNone;
  for (void* stream : streams) {
    if (error == Error::kNone) error = RecordEvent(mark, stream);
    if (error == Error::kNone) error = WaitForEvent(meeting, mark);
  }
  if (error == Error::kNone) error = RecordEvent(event, meeting);
  const std::lock_guard<std::mutex> lock(process.mutex);
  const Error ended = DestroyEvent(process, mark);
  return error != Error::kNone ? error : ended;
}

Error WaitOfGreen(const void* green, void* event) {
  std::vector<void*> streams;
  if (IsWholeDevice(green)) return Error::kNotSupported;
  if (const Error error = LockedStreamsOf(green, &streams); error != Error::kNone) return error;
  for (void* stream : streams) {
    if (const Error error = WaitForEvent(stream, event); error != Error::kNone) return error;
  }
  return Error::kNone;
}

Error SynchronizeGreen(const void* green) {
  std::vector<void*> streams;
  if (IsWholeDevice(green)) return SynchronizeDevice();
  if (const Error error = LockedStreamsOf(green, &streams); error != Error::kNone) return error;
  for (void* stream : streams) {
    if (const Error error = SynchronizeStream(stream); error != Error::kNone) return error;
  }
  return Error::kNone;
}

}  // namespace ashlar::hollow
