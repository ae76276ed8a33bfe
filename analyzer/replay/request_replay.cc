#include "analyzer/replay/request_replay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/inspect.h"

namespace ashlar::replay {
namespace {

constexpr char kTag[] = "asleep";  // pools are asked for by their ids

}  // namespace

RequestReplay::RequestReplay(RequestReplayOptions options)
    : device_(std::move(options.device)), allocator_(&device_, std::move(options.policy)) {
  allocator_.SetFailureReports(false);
  core::Reconstruction(allocator_).PollNewsOf(device_);
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
    case trace::OpKind::kAlloc:
      return Allocate(request, trace);
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
    case trace::OpKind::kTagPool:
      return allocator_.TagPool(trace.pools[request.pool], kTag);
    case trace::OpKind::kSleep:
      return allocator_.Sleep({.pools = {trace.pools[request.pool]}, .keep = Keep::kNothing}).status();
    case trace::OpKind::kWake:
      return Wake(trace.pools[request.pool]);
  }
  return absl::OkStatus();
}

absl::Status RequestReplay::Allocate(const trace::Op& request, const trace::RequestTrace& trace) {
  core::Block*& place = blocks_[request.id];
  if (const std::optional<core::Block*> block = PutBack(request.id, trace); block.has_value()) {
    place = *block;
  } else {
    absl::StatusOr<core::Block*> served = allocator_.Allocate(request.bytes, request.stream, trace.pools[request.pool]);
    if (!served.ok()) {
      const bool is_asleep = failed_wakes_ > 0 && absl::IsFailedPrecondition(served.status());
      return is_asleep || absl::IsResourceExhausted(served.status()) ? absl::OkStatus() : served.status();
    }
    place = *served;
  }
  if (place != nullptr && !trace.put_back.empty() && !trace.pools[request.pool].IsDefault()) {
    places_[request.id] = {place->address, place->size_bytes};
  }
  return absl::OkStatus();
}

std::optional<core::Block*> RequestReplay::PutBack(std::uint32_t id, const trace::RequestTrace& trace) {
  const auto it = std::lower_bound(trace.put_back.begin(), trace.put_back.end(), id,
                                   [](const trace::PutBack& block, std::uint32_t of) { return block.id < of; });
  if (it == trace.put_back.end() || it->id != id) return std::nullopt;
  if (it->earlier == trace::PutBack::kNobody) return nullptr;
  const auto place = places_.find(it->earlier);
  if (place == places_.end()) return std::nullopt;
  core::Block* block = core::Reconstruction(allocator_).AllocateAt(place->second);
  return block != nullptr ? std::optional(block) : std::nullopt;
}

// Who empties a pool has left it; a list of requests says no more of users.
absl::Status RequestReplay::EmptyPool(PoolId pool) {
  if (pool.IsDefault()) return absl::OkStatus();  // its requests were moved to the default pool
  while (allocator_.PoolUseCount(pool) > 0) allocator_.ReleasePool(pool);
  return allocator_.EmptyPool(pool);
}

absl::Status RequestReplay::Wake(PoolId pool) {
  const absl::Status woken = allocator_.Wake({.pools = {pool}});
  if (!absl::IsResourceExhausted(woken)) return woken;
  ++failed_wakes_;
  return absl::OkStatus();
}

namespace {

class SnapshotSink final : public OpSink {
 public:
  void SetOp(std::uint64_t) override {}
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    events.push_back(event);
    events.back().block_size_bytes = block_size_bytes;
  }
  void OnFact(const trace::AnyFact& fact) override { facts.push_back({fact, events.size()}); }

  std::vector<trace::Event> events;
  std::vector<trace::Fact> facts;
};

}  // namespace

absl::StatusOr<trace::Snapshot> RecordRequests(const trace::RequestTrace& requests, RequestReplayOptions options) {
  RequestReplay replay(std::move(options));
  SnapshotSink sink;
  if (absl::Status status = replay.Run(requests, &sink); !status.ok()) return status;
  trace::Snapshot out;
  const core::Inspection inspection(replay.allocator());
  inspection.WhileStill([&] {
    out = inspection.HeadNow(0);
    out.segments = inspection.SegmentsNow();
    out.recording->reservations = inspection.ReservationsNow();
  });
  out.traits.has_time = out.traits.has_stacks = false;
  out.recording->is_complete = true;
  out.recording->start.emplace().has_segments = true;  // of an empty allocator
  out.recording->facts = std::move(sink.facts);
  out.device_traces[0] = std::move(sink.events);
  return out;
}

}  // namespace ashlar::replay
