// Watches a run's requests for the moment of its greatest need, of the whole run and of each phase of a step, and which
// of the activations alive then were saved for backward: born in a forward pass and alive when it had ended.
//
//   PeakRecorder recorder(context.memory());
//   allocator.SetSink(&recorder);
//   ... the run ...
//   recorder.peak().place; recorder.SavedBytesAtPeak(); recorder.Phases();
//
// One thread. About 40 bytes a request.
#ifndef ASHLAR_ESTIMATOR_PEAK_RECORDER_H_
#define ASHLAR_ESTIMATOR_PEAK_RECORDER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/trace/sink.h"
#include "estimator/run_observer.h"
#include "kernels/tensor/memory.h"

namespace ashlar::estimate {

// The request at which a run's need was greatest, or which failed.
struct PeakMoment {
  std::uint64_t event = 0;          // counted in requests and frees from the run's begin
  std::uint64_t request_bytes = 0;  // of the request made there
  std::int64_t step = 0;            // from 1; 0: before the first
  kernels::Place place;
  std::uint64_t device_free_bytes = 0;  // of a request that failed
};

// A phase of a step at its greatest need; of "between steps" the end, what a step leaves. A phase that a step enters
// again, with its next batch, is one phase.
struct PhaseMoment {
  std::int64_t step = 0;  // from 1; 0: before the first
  std::string phase;
  std::uint64_t event = 0;
  kernels::PartBytes live = {};
  std::uint64_t live_bytes = 0;  // their sum
  std::uint64_t saved_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

class PeakRecorder final : public trace::EventSink {
 public:
  // `observer` is told everything too; it may be nullptr.
  explicit PeakRecorder(const kernels::TensorMemory& memory, RunObserver* observer = nullptr)
      : memory_(memory), observer_(observer) {}

  void BeginStep(std::int64_t step);
  void End();  // of the last step; events are ignored from now on
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  void OnFact(const trace::AnyFact& fact) override;

  // Of the failed request where one failed.
  const PeakMoment& peak() const { return peak_; }
  std::uint64_t SavedBytesAtPeak() const;
  // In the order in which they began.
  std::vector<PhaseMoment> Phases() const;

 private:
  struct Block {
    std::uint64_t size_bytes;
    std::uint64_t born, died;              // events
    std::uint32_t born_phase, died_phase;  // counted changes of phase
    bool is_of_forward;                    // an activation, made in a forward pass
  };
  void OnAllocate(const trace::Event& event);
  void OnFree(const trace::Event& event);
  void EnterPhase();
  void EndStep();
  void SetMoment(std::uint64_t request_bytes);
  // Of activations at these events, which ascend.
  std::vector<std::uint64_t> SavedBytesAt(const std::vector<std::uint64_t>& events) const;
  void SetPeak(std::uint64_t request_bytes, std::uint64_t device_free_bytes);

  const kernels::TensorMemory& memory_;
  RunObserver* observer_;
  std::int64_t step_ = 0;
  std::string phase_;
  std::uint32_t phase_number_ = 0;
  std::uint64_t event_ = 0;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool failed_ = false;
  bool is_over_ = false;
  PeakMoment peak_;
  std::uint64_t reserved_bytes_ = 0;
  std::vector<PhaseMoment> phases_;
  std::size_t now_ = 0;  // in phases_
  std::vector<Block> blocks_;
  std::unordered_map<std::uint64_t, std::size_t> live_;  // address -> index in blocks_
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_PEAK_RECORDER_H_
