#include "analyzer/replay/request_replay.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::replay {

RequestReplay::RequestReplay(RequestReplayOptions options)
    : device_(std::move(options.device)), allocator_(&device_, std::move(options.policy)) {
  allocator_.SetFailureReports(false);
  if (options.memory_fraction.has_value()) setup_ = allocator_.SetMemoryFraction(*options.memory_fraction);
}

absl::Status RequestReplay::Run(const trace::RequestTrace& trace, OpSink* sink) {
  blocks_.clear();
  return RunPart(trace, 0, trace.requests.size(), sink);
}

absl::Status RequestReplay::RunPart(const trace::RequestTrace& trace, std::size_t begin, std::size_t end,
                                    OpSink* sink) {
  if (!setup_.ok()) return setup_;
  blocks_.resize(trace.id_count, nullptr);
  allocator_.SetSink(sink);
  for (std::size_t op = begin; op < end; ++op) {
    if (sink != nullptr) sink->SetOp(op);
    if (absl::Status status = Step(trace.requests[op], trace); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("op ", op, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status RequestReplay::Step(const trace::Op& request, const trace::RequestTrace& trace) {
  switch (request.kind) {
    case trace::OpKind::kAlloc: {
      absl::StatusOr<core::Block*> block =
          allocator_.Allocate(request.bytes, request.stream, trace.pools[request.pool]);
      if (block.ok()) {
        blocks_[request.id] = *block;
      } else if (!absl::IsResourceExhausted(block.status())) {
        return block.status();
      }
      return absl::OkStatus();
    }
    case trace::OpKind::kFree:
      if (core::Block* block = std::exchange(blocks_[request.id], nullptr); block != nullptr) allocator_.Free(block);
      return absl::OkStatus();
    case trace::OpKind::kRecordStream:
      if (core::Block* block = blocks_[request.id]; block != nullptr) allocator_.RecordStream(block, request.stream);
      return absl::OkStatus();
    case trace::OpKind::kDeviceSync:
      device_.CompleteAllWork();
      return absl::OkStatus();
    case trace::OpKind::kStreamSync:
      device_.CompleteStream(request.stream);
      return absl::OkStatus();
    case trace::OpKind::kEmptyCache:
      if (request.pool != 0) return EmptyPool(trace.pools[request.pool]);
      allocator_.EmptyCache();
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Who empties a pool has left it; a list of requests says no more of users.
absl::Status RequestReplay::EmptyPool(PoolId pool) {
  if (pool.IsDefault()) return absl::OkStatus();  // its requests were moved to the default pool
  while (allocator_.PoolUseCount(pool) > 0) allocator_.ReleasePool(pool);
  return allocator_.EmptyPool(pool);
}

}  // namespace ashlar::replay
