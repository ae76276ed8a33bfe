// A run's allocator as a snapshot: every decision from the start, with who asked (tensor, parameter, part, phase) as
// its stack, steps as marks, and the segments at the end.
//
//   RunCapture capture("bert_training");
//   RunDry(model, options, device::AddressOrder::kAscending, &capture);
//   readers::WriteTorchSnapshot(capture.snapshot());   // or trace::Encode, which keeps the version of the rules too
//
// The clock counts decisions, a microsecond each: it orders marks and events, and measures nothing.
#ifndef ASHLAR_ANALYZER_ESTIMATE_RUN_CAPTURE_H_
#define ASHLAR_ANALYZER_ESTIMATE_RUN_CAPTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/trace/snapshot.h"
#include "analyzer/estimate/run_observer.h"

namespace ashlar::estimate {

class RunCapture final : public RunObserver {
 public:
  // `program`: the file that its frames name.
  explicit RunCapture(std::string program) : program_(std::move(program)) {}

  void OnBegin(const core::CachingAllocator& allocator, const kernels::Memory& memory) override;
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
  const kernels::Memory* memory_ = nullptr;
  std::int64_t step_ = 0;  // 0: none has begun
  std::vector<trace::Event> events_;
  std::vector<trace::Fact> facts_;
  trace::Snapshot snapshot_;  // annotations and stacks grow during the run
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_RUN_CAPTURE_H_
