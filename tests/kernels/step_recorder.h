// Keeps what a program asked of its allocator, in the order it asked: each allocation by its size, each free by which
// allocation it ends. Two programs that agree in this list agree in what they allocate and when.
#ifndef ASHLAR_TESTS_KERNELS_STEP_RECORDER_H_
#define ASHLAR_TESTS_KERNELS_STEP_RECORDER_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/trace/event.h"
#include "allocator/trace/sink.h"

namespace ashlar::kernels {

struct StepEvent {
  bool is_free = false;
  std::uint64_t size_bytes = 0;
  std::int64_t allocation = -1;  // counted from the list's begin; -1: from before it
  bool operator==(const StepEvent&) const = default;
};

inline std::string ToString(const StepEvent& event) {
  return absl::StrCat(event.is_free ? "free " : "alloc ", event.size_bytes, " #", event.allocation);
}
inline void PrintTo(const StepEvent& event, std::ostream* out) { *out << ToString(event); }

// Collects from the moment it is made.
class StepEvents final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kAlloc) {
      live_[event.address] = count_;
      list_.push_back({false, event.size_bytes, count_++});
    } else if (event.action == trace::Action::kFreeRequested) {
      const auto it = live_.find(event.address);
      list_.push_back({true, event.size_bytes, it == live_.end() ? -1 : it->second});
      if (it != live_.end()) live_.erase(it);
    }
  }
  const std::vector<StepEvent>& list() const { return list_; }

 private:
  std::unordered_map<std::uint64_t, std::int64_t> live_;
  std::int64_t count_ = 0;
  std::vector<StepEvent> list_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_TESTS_KERNELS_STEP_RECORDER_H_
