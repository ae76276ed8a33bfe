// An observer watches a dry run: the beginning of each step, and every decision of the allocator in between.
#ifndef ASHLAR_ESTIMATOR_RUN_OBSERVER_H_
#define ASHLAR_ESTIMATOR_RUN_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/trace/request.h"
#include "allocator/trace/sink.h"
#include "allocator/trace/snapshot.h"
#include "kernels/tensor/memory.h"

namespace ashlar::estimate {

class RunObserver : public trace::EventSink {
 public:
  // Before the first request; both outlive the run.
  virtual void OnBegin(const core::CachingAllocator& /*allocator*/, const kernels::TensorMemory& /*memory*/) {}
  virtual void OnStep(std::int64_t /*step*/) {}  // from 1
  // The last step has ended, its model is still there; what is freed afterwards is not told.
  virtual void OnEnd() {}
};

// A dry run as a list of requests, for replays under other settings and in other memory.
//
//   RequestList list;
//   RunDry(model, options, device::AddressOrder::kAscending, &list);
//   replay.Run(list.requests());
class RequestList final : public RunObserver {
 public:
  void OnStep(std::int64_t) override { step_begins_.push_back(requests_.requests.size()); }
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;

  const trace::RequestTrace& requests() const { return requests_; }
  // The step, from 1, that a request belongs to; 0: before the first.
  std::int64_t StepOf(std::uint64_t request) const;

 private:
  trace::RequestTrace requests_;
  std::vector<std::uint64_t> step_begins_;                 // the first request of each step
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // address -> id
};

// A run's allocator as a snapshot: every decision from the start, with who asked (tensor, parameter, part, phase) as
// its stack, steps as marks, and the segments at the end.
//
//   RunCapture capture("bert_training");
//   RunDry(model, options, device::AddressOrder::kAscending, &capture);
//   formats::WriteTorchSnapshot(capture.snapshot());   // or trace::Encode, which keeps the version of the rules too
//
// The clock counts decisions, a microsecond each: it orders marks and events, and measures nothing.
class RunCapture final : public RunObserver {
 public:
  // `program`: the file that its frames name.
  explicit RunCapture(std::string program) : program_(std::move(program)) {}

  void OnBegin(const core::CachingAllocator& allocator, const kernels::TensorMemory& memory) override;
  void OnStep(std::int64_t step) override;
  void OnEnd() override;
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  void OnFact(const trace::AnyFact& fact) override;

  // After OnEnd.
  const trace::Snapshot& snapshot() const { return snapshot_; }

 private:
  trace::StackId StackNow(const trace::Event& event);
  void Mark(const char* stage);
  std::int64_t Now() const { return static_cast<std::int64_t>(events_.size()); }

  std::string program_;
  const core::CachingAllocator* allocator_ = nullptr;
  const kernels::TensorMemory* memory_ = nullptr;
  std::int64_t step_ = 0;  // 0: none has begun
  std::vector<trace::Event> events_;
  std::vector<trace::Fact> facts_;
  trace::Snapshot snapshot_;  // annotations and stacks grow during the run
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_RUN_OBSERVER_H_
