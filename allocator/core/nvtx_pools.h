// Shows the allocator's blocks to compute-sanitizer: each segment is a pool, each block in use a region of it, as long
// as was asked for. So a kernel that writes behind its block, into a neighbour's or a free one, is an error that
// memcheck finds, where cudaMalloc alone would have been one large valid range.
//
//   NvtxPools pools;
//   allocator.SetSink(&pools);                        // before its first request
//   $ CUDA_LAUNCH_BLOCKING=1 compute-sanitizer --nvtx=yes ./program
//
// Off costs nothing, since there is no sink then; on, all threads share one lock. Segments that exist already when the
// sink is set, and expandable ones (the tool's pools are for memory of cudaMalloc), stay one valid range each.
// A block ends when its free completes, which is before work that its own stream was given earlier has run.
// Threads: the allocator's rule for sinks, one call at a time.
#ifndef ASHLAR_ALLOCATOR_CORE_NVTX_POOLS_H_
#define ASHLAR_ALLOCATOR_CORE_NVTX_POOLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "allocator/device/nvtx_memory.h"
#include "allocator/trace/sink.h"

namespace ashlar::core {

class NvtxPools final : public trace::EventSink {
 public:
  // `next` gets every event as well, so that a run can be recorded beside; nullptr = none. Not owned.
  explicit NvtxPools(trace::EventSink* next = nullptr) : next_(next) {}

  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override;
  void OnFact(const trace::AnyFact& fact) override {
    if (next_ != nullptr) next_->OnFact(fact);
  }
  std::string PlaceOf(std::uint64_t address) const override {
    return next_ == nullptr ? std::string() : next_->PlaceOf(address);
  }
  void NameBlocks(trace::Snapshot& state) const override {
    if (next_ != nullptr) next_->NameBlocks(state);
  }
  bool OnFork() override {
    if (next_ != nullptr && !next_->OnFork()) next_ = nullptr;
    return true;
  }
  std::optional<absl::Status> WriteKept(const std::string& path) override {
    return next_ == nullptr ? std::nullopt : next_->WriteKept(path);
  }

 private:
  struct Pool {
    std::uint64_t end = 0;
    device::NvtxHeap heap{};
  };
  const Pool* Find(std::uint64_t address) const;

  trace::EventSink* next_;
  std::map<std::uint64_t, Pool> pools_;  // by the segment's address; none without a tool
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_NVTX_POOLS_H_
