// A simulated device that answers a replayed request as the recorded device answered it: it gives segments where the
// record has them, and is out of memory where the record shows that the ladder went on.
//
//   script of a request   [segment_free 0x7f.., free_completed 0x7e.., segment_alloc 0x7f..]
//   first attempt to grow   out of memory, as the record releases memory first
//   segment_free seen       the ladder did that: the script moves on
//   next attempt            the segment, at its recorded address
//
// A replay that no longer follows its script is given memory anyway, at an address of the device's own choice.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_DEVICE_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "allocator/device/device.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/event.h"

namespace ashlar::replay {

// More mapped memory than this is in no device; a record that says so is not followed (every page costs a record here).
inline constexpr std::uint64_t kMostMappedBytes = std::uint64_t{1} << 43;

// Stand in a script for what is no event: growth that was refused, an address range that was reserved.
inline trace::Event RefusedAnswer() {
  trace::Event answer;
  answer.action = trace::Action::kOom;
  return answer;
}
inline trace::Event ReservedAnswer(std::uint64_t address) {
  trace::Event answer;
  answer.action = trace::Action::kAnnotate;
  answer.address = address;
  return answer;
}

// What is left of the answers of one request, first to last. Most requests need none: an empty script takes no memory.
class Script {
 public:
  bool empty() const { return next_ == events_.size(); }
  const trace::Event& front() const { return events_[next_]; }
  void pop_front() { ++next_; }
  void push_back(const trace::Event& event) { events_.push_back(event); }
  std::vector<trace::Event>::iterator begin() { return events_.begin() + static_cast<std::ptrdiff_t>(next_); }
  std::vector<trace::Event>::iterator end() { return events_.end(); }
  // Cheap near the front, where it is wanted.
  void erase(std::vector<trace::Event>::iterator event) {
    std::move_backward(begin(), event, event + 1);
    ++next_;
  }

 private:
  std::vector<trace::Event> events_;
  std::size_t next_ = 0;
};

// Where the device put memory, but not what it refused.
Script GrowthOf(Script script);

class RecordedDevice final : public device::Device {
 public:
  // `total_bytes`: the recording device's memory, where decisions depend on it (Policy::kAshlar).
  // `capacity_bytes`: where no record says when memory ran out.
  explicit RecordedDevice(std::optional<std::uint64_t> total_bytes = {},
                          std::optional<std::uint64_t> capacity_bytes = {});

  // The segment events and completed frees recorded for the next request. For one that ran out of memory: the bytes
  // that were free then, else nullopt.
  void Begin(Script script, std::optional<std::uint64_t> oom_free_bytes);
  // The same, where the record says what was refused and reserved: RefusedAnswer and ReservedAnswer stand among the
  // events. `gives_up`: in the end it failed with an error that is not out of memory.
  void BeginLogged(Script script, std::optional<std::uint64_t> oom_free_bytes, bool gives_up = false);
  // The replay made this decision.
  void Saw(const trace::Event& event);
  // The device or a limit refused to grow.
  void SawRefusal();

  // A segment or reservation that stood there before: nothing new begins there.
  void AddBase(std::uint64_t address) { bases_.insert(address); }

  device::SimDevice& simulated() { return sim_; }
  std::uint64_t addresses_used() const { return addresses_used_; }

  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override;
  absl::Status FreeSegment(std::uint64_t address) override {
    bases_.erase(address);
    return sim_.FreeSegment(address);
  }
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override;
  absl::Status ReleaseReservation(std::uint64_t address) override {
    bases_.erase(address);
    return sim_.ReleaseReservation(address);
  }
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override;
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    return sim_.Unmap(address, size_bytes, page_bytes);
  }
  device::MemoryInfo GetMemoryInfo() override;
  device::DeviceEvent RecordEvent(Stream stream) override { return sim_.RecordEvent(stream); }
  bool QueryEvent(const device::DeviceEvent& event) override { return sim_.QueryEvent(event); }
  absl::Status SynchronizeEvent(const device::DeviceEvent& event) override { return sim_.SynchronizeEvent(event); }
  absl::Status SynchronizeStream(Stream stream) override { return sim_.SynchronizeStream(stream); }
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override { return sim_.MakeStreamWait(stream, awaited); }
  // Nothing: work is completed where the record says so.
  void SetCapturing(bool /*is_capturing*/) override {}

 private:
  // Ok: the call is answered with what it asked for.
  absl::Status Refusal();
  bool IsOutOfMemory();

  device::SimDevice sim_;
  std::optional<std::uint64_t> total_bytes_;
  Script script_;
  std::optional<std::uint64_t> oom_free_bytes_;
  bool is_logged_ = false;
  bool gives_up_ = false;
  int refusals_ = 0;  // since Begin
  std::optional<std::uint64_t> next_address_;
  absl::flat_hash_set<std::uint64_t> bases_;  // of segments and reservations; only looked up
  std::uint64_t addresses_used_ = 0;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_DEVICE_H_
