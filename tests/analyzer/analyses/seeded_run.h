// A program written down request by request, whose flaw is known because the test put it there: an allocator over a
// simulated device records it as PyTorch would, with named stacks, streams, record_stream, marks and time.
//
//   SeededRun run({.capacity_bytes = 4 * kGiB});
//   run.At("model.py", 45, "attention");
//   core::Block* scores = run.Allocate(300 * kMiB);   // nullptr once it ran out of memory
//   run.RecordStream(scores, Stream{7});
//   run.Free(scores);                                 // pending until run.FinishStream(Stream{7})
//   SeededInput input = run.Finish();
//   Diagnosis diagnosis(input);                       // timeline, context and causes of it
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_SEEDED_RUN_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_SEEDED_RUN_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/sink.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/causes/cause.h"

namespace ashlar::tests {

struct SeededOptions {
  std::string conf = {};
  std::uint64_t capacity_bytes = 16 * kGiB;
  bool has_pool_ids = false;  // whether events name their pool (PyTorch's do from 2026 on)
};

struct SeededFrame {
  const char* file;
  int line;
  const char* function;
};

// What an analysis gets to see.
struct SeededInput {
  trace::Snapshot snapshot;
  std::optional<std::uint64_t> total_bytes = {};
  std::optional<std::uint64_t> device_used_bytes = {};
  std::vector<analyses::RankPeak> ranks = {};
  bool fails_again = false;  // CauseContext::fails_again
};

class SeededRun final : public trace::EventSink {
 public:
  explicit SeededRun(SeededOptions options = {});

  // The stack of the requests from now on, innermost frame first.
  void At(const char* file, int line, const char* function) { At({{file, line, function}}); }
  void At(std::initializer_list<SeededFrame> frames);

  // nullptr when it ran out of memory; every later call then does nothing, as after an exception.
  core::Block* Allocate(std::uint64_t bytes, Stream stream = {}, PoolId pool = {});
  // A request that must run out of memory, and whose error the program handles.
  void Fail(std::uint64_t bytes);
  void Free(core::Block* block);
  void Free(std::vector<core::Block*>& blocks);  // in reverse order; empties the list
  void RecordStream(core::Block* block, Stream stream);
  void FinishStream(Stream stream) { device_.CompleteStream(stream); }
  void FinishAllWork() { device_.CompleteAllWork(); }
  void EmptyCache();
  void Wait(std::int64_t us) { time_us_ += us; }
  // Marks as torch.profiler.record_function makes them.
  void Begin(const std::string& name) { Mark("START", name); }
  void End(const std::string& name) { Mark("END", name); }
  // The recorded window begins here.
  void ForgetEvents();
  std::uint64_t LiveBytes() const;  // of all blocks that the program has
  bool is_out_of_memory() const { return is_out_of_memory_; }

  SeededInput Finish();

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;

 private:
  void Mark(const char* stage, const std::string& name);

  SeededOptions options_;
  device::SimDevice device_;
  core::CachingAllocator allocator_;
  trace::Snapshot snapshot_;
  trace::StackId stack_ = trace::kNoStack;
  std::map<std::uint64_t, trace::StackId> stack_of_;
  std::int64_t time_us_ = 1'763'600'000'000'000;
  bool is_out_of_memory_ = false;
};

// Timeline, context and causes of an input; the snapshot may be a file's too. Not copyable.
class Diagnosis {
 public:
  // Aborts where the snapshot contradicts itself.
  explicit Diagnosis(const SeededInput& input);
  Diagnosis(const Diagnosis&) = delete;
  Diagnosis& operator=(const Diagnosis&) = delete;

  const timeline::Timeline& timeline() const { return *timeline_; }
  const analyses::CauseContext& context() const { return context_; }
  const policy::Options& options() const { return options_; }
  const std::vector<analyses::CauseFinding>& causes() const { return causes_; }
  // The found ones, in order.
  std::vector<analyses::CauseFinding> Found() const;
  const analyses::CauseFinding& Of(analyses::CauseKind kind) const;

 private:
  policy::Options options_;
  std::optional<timeline::Timeline> timeline_;
  analyses::CauseContext context_;
  std::vector<analyses::CauseFinding> causes_;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_SEEDED_RUN_H_
