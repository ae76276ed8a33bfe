#include "analyzer/formats/json/chrome_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/trace/request_window.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/json/json_events.h"

namespace ashlar::formats {
namespace {

struct DeviceKey {
  std::int64_t type = 0;  // as PyTorch numbers them: 0 is the host, 1 CUDA
  std::int64_t index = 0;

  auto operator<=>(const DeviceKey&) const = default;
};

struct MemoryEvent {
  double time_us = 0;
  std::int64_t bytes = 0;
  std::uint64_t address = 0;
  std::uint64_t allocated = 0, reserved = 0;  // after it, by the trace's own count
  DeviceKey device;
};

double AsDouble(const JsonScalar& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? 0 : *number;
}

std::int64_t AsSigned(const JsonScalar& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  const auto* number = std::get_if<std::uint64_t>(&value);
  return number == nullptr ? 0 : static_cast<std::int64_t>(std::min<std::uint64_t>(*number, INT64_MAX));
}

std::uint64_t AsUnsigned(const JsonScalar& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  std::uint64_t out = 0;
  const auto* text = std::get_if<absl::string_view>(&value);
  return text != nullptr && absl::SimpleHexAtoi(*text, &out) ? out : 0;
}

// The events of the array of a trace: the top level itself, or "traceEvents" of the object that it is.
class MemoryEvents final : public JsonEvents {
 public:
  std::vector<MemoryEvent> Take() {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.time_us < b.time_us; });
    return std::move(events_);
  }

  bool start_object(std::size_t /*elements*/) override {
    ++depth_;
    if (depth_ == event_depth_) {
      event_ = {};
      is_memory_ = false;
    }
    is_args_ = depth_ == event_depth_ + 1 && key_ == "args";
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_ && is_memory_) events_.push_back(event_);
    if (depth_ == event_depth_ + 1) is_args_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) event_depth_ = depth_ + 1;
    return true;
  }
  bool end_array() override {
    if (depth_ + 1 == event_depth_) event_depth_ = kNowhere;
    --depth_;
    return true;
  }
  bool key(std::string& name) override {
    key_ = name;
    return true;
  }
  bool Scalar(const JsonScalar& value) override {
    if (depth_ == event_depth_) {
      if (key_ == "name") is_memory_ = value == JsonScalar(absl::string_view("[memory]"));
      if (key_ == "ts") event_.time_us = AsDouble(value);
    } else if (is_args_ && depth_ == event_depth_ + 1) {
      Argument(value);
    }
    return true;
  }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX - 1;

  void Argument(const JsonScalar& value) {
    if (key_ == "Bytes") event_.bytes = AsSigned(value);
    if (key_ == "Addr") event_.address = AsUnsigned(value);
    if (key_ == "Total Allocated") event_.allocated = AsUnsigned(value);
    if (key_ == "Total Reserved") event_.reserved = AsUnsigned(value);
    if (key_ == "Device Type") event_.device.type = AsSigned(value);
    if (key_ == "Device Id") event_.device.index = AsSigned(value);
  }

  std::size_t depth_ = 0;
  std::size_t event_depth_ = kNowhere;
  std::string key_;
  MemoryEvent event_;
  bool is_memory_ = false, is_args_ = false;
  std::vector<MemoryEvent> events_;
};

// That of which most bytes were asked for.
std::optional<DeviceKey> BusiestDevice(const std::vector<MemoryEvent>& events) {
  std::map<DeviceKey, std::uint64_t> bytes;
  for (const MemoryEvent& event : events) {
    if (event.device.type != 0 && event.bytes > 0) bytes[event.device] += static_cast<std::uint64_t>(event.bytes);
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? std::nullopt : std::optional(most->first);
}

class RequestsOfEvents {
 public:
  explicit RequestsOfEvents(const ReadLimits& limits) : requests_(limits.max_events) {}

  trace::RequestTrace Run(const std::vector<MemoryEvent>& events, DeviceKey device) {
    for (const MemoryEvent& event : events) {
      if (event.device != device) {
        ++(event.device.type == 0 ? of_host_ : of_others_);
      } else {
        Add(event);
      }
    }
    trace::RequestTrace about{.requests = {}, .id_count = id_count_};
    about.source = absl::StrCat("Chrome trace of torch.profiler, device ", device.index);
    if (reserved_peak_ > 0) {
      about.notes.push_back({"totals_of_the_trace",
                             absl::StrCat("by the trace's own totals ", FormatBytes(allocated_peak_),
                                          " were allocated and ", FormatBytes(reserved_peak_), " reserved at most"),
                             reserved_peak_});
    }
    Note(about, "live_before", before_bytes_ == 0 ? 0 : 1,
         absl::StrCat("memory that was there when the trace began is not in it: ", FormatBytes(before_bytes_)));
    Note(about, "frees_of_before", unknown_frees_, "frees of what was there when the trace began, left out");
    Note(about, "missing_frees", lost_frees_, "frees that the trace lacks, put where their address is used again");
    Note(about, "other_devices", of_others_, "memory events of other devices, left out");
    Note(about, "host_memory", of_host_, "memory events of the host, left out");
    return requests_.Finish(std::move(about));
  }

 private:
  static void Note(trace::RequestTrace& about, absl::string_view name, std::uint64_t count, absl::string_view message) {
    if (count > 0) about.notes.push_back({std::string(name), std::string(message), count});
  }

  void Add(const MemoryEvent& event) {
    if (!has_begun_) {
      const std::uint64_t own = event.bytes > 0 ? static_cast<std::uint64_t>(event.bytes) : 0;
      before_bytes_ = event.allocated > own ? event.allocated - own : 0;
      has_begun_ = true;
    }
    allocated_peak_ = std::max(allocated_peak_, event.allocated);
    reserved_peak_ = std::max(reserved_peak_, event.reserved);
    const auto known = live_.find(event.address);
    if (known != live_.end()) {
      lost_frees_ += event.bytes > 0 ? 1 : 0;
      requests_.Add({.id = known->second, .kind = trace::OpKind::kFree});
      live_.erase(known);
    } else if (event.bytes < 0) {
      ++unknown_frees_;
    }
    if (event.bytes <= 0) return;
    live_.emplace(event.address, id_count_);
    requests_.Add({.bytes = static_cast<std::uint64_t>(event.bytes), .id = id_count_++, .kind = trace::OpKind::kAlloc});
  }

  trace::RequestWindow requests_;
  std::uint32_t id_count_ = 0;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> live_;  // address to id
  bool has_begun_ = false;
  std::uint64_t before_bytes_ = 0, allocated_peak_ = 0, reserved_peak_ = 0;
  std::uint64_t unknown_frees_ = 0, lost_frees_ = 0, of_others_ = 0, of_host_ = 0;
};

}  // namespace

bool IsChromeTrace(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, kHeadBytes);
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == absl::string_view::npos) return false;
  if (head[begin] == '{') return absl::StrContains(head, "\"traceEvents\"");
  return head[begin] == '[' && absl::StrContains(head, "\"ph\"") && absl::StrContains(head, "\"pid\"");
}

absl::StatusOr<trace::RequestTrace> ReadChromeTrace(absl::string_view bytes, const ReadLimits& limits) {
  MemoryEvents found;
  if (absl::Status status = ParseJson("Chrome trace", bytes, found); !status.ok()) return status;
  const std::vector<MemoryEvent> events = found.Take();
  const std::optional<DeviceKey> device = BusiestDevice(events);
  if (device.has_value()) return RequestsOfEvents(limits).Run(events, *device);
  return absl::InvalidArgumentError(absl::StrCat("this Chrome trace has no memory events of a device",
                                                 events.empty() ? "" : ", only the host's",
                                                 ": record it with torch.profiler.profile(profile_memory=True) while "
                                                 "the program uses the GPU, or give a snapshot: "
                                                 "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"));
}

}  // namespace ashlar::formats
