// A run's allocator as a PyTorch snapshot: every decision from the start, under the step's phase and the parameter at
// work, and the segments at the end.
#ifndef ASHLAR_ANALYZER_CLI_RUN_CAPTURE_H_
#define ASHLAR_ANALYZER_CLI_RUN_CAPTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/trace/sink.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "kernels/workloads/world.h"

namespace ashlar::cli {

// Records from the moment it is made until it ends; the world outlives it.
class RunCapture final : public trace::EventSink {
 public:
  RunCapture(kernels::World& world, std::string workload);
  ~RunCapture() override;
  RunCapture(const RunCapture&) = delete;
  RunCapture& operator=(const RunCapture&) = delete;

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  trace::Snapshot Snapshot() const;

 private:
  kernels::World& world_;
  std::string workload_;
  std::vector<trace::Event> events_;
  trace::StackTable stacks_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_RUN_CAPTURE_H_
