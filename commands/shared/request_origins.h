// Where the requests of a what-if stand in the recorded run, so that replays of the same requests are drawn on one
// axis: the recorded event of each, its time and its stack. Requests that were projected follow at the pace of the
// recorded ones.
//
//   const RequestOrigins origins = RequestOrigins::OfProgram(program, observed, is_capacity_known, next);
//   origins.PlaceOf(op);   // 6768
//
// Immutable; safe from any thread.
#ifndef ASHLAR_COMMANDS_SHARED_REQUEST_ORIGINS_H_
#define ASHLAR_COMMANDS_SHARED_REQUEST_ORIGINS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/event.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

class RequestOrigins {
 public:
  // Of a request trace: a request stands at its own number.
  RequestOrigins() = default;
  // Of whatif::WhatIfRequests(program, is_capacity_known), or of `next` where that is given. `observed` must outlive
  // it.
  static RequestOrigins OfProgram(const replay::SnapshotProgram& program, const timeline::Timeline& observed,
                                  bool is_capacity_known, const analyses::Continuation* next);

  std::int64_t PlaceOf(std::uint64_t op) const;
  // kNoTime where the record has none.
  std::int64_t TimeOf(std::uint64_t op) const;
  trace::StackId StackOf(std::uint64_t op) const;
  // The event that allocated the same request's block in the record; kBeforeWindow where it is older or not known.
  timeline::EventIndex EventOf(std::uint64_t op) const;
  // The first request that was not recorded.
  std::optional<std::uint64_t> projected_from() const { return projected_from_; }

 private:
  void AddStartStacks(const replay::SnapshotProgram& program);
  void Project(const analyses::Continuation& next);

  const timeline::Timeline* observed_ = nullptr;
  std::vector<std::int64_t> places_;          // of each request
  std::vector<trace::StackId> start_stacks_;  // of the first requests: blocks older than the window
  std::optional<std::uint64_t> projected_from_;
  std::int64_t last_time_us_ = trace::kNoTime;
  double us_per_place_ = 0;
};

// The sink of a replay that may be drawn: its timeline, and the request that each event answers.
//
//   std::vector<std::uint32_t> ops;
//   PlacedSink sink(&ops, &origins);
//   replay.Run(requests, &sink);
//   ops[event];   // the request, as a position in the trace
//
// Not thread-safe.
class PlacedSink final : public replay::OpSink {
 public:
  // nullptr: nobody asks for the requests; the requests have no origin. What is given must outlive it.
  explicit PlacedSink(std::vector<std::uint32_t>* ops, const RequestOrigins* origins = nullptr)
      : ops_(ops), origins_(origins), timeline_(timeline::StartState{}) {}

  void SetOp(std::uint64_t op) override {
    op_ = static_cast<std::uint32_t>(op);
    if (origins_ != nullptr) timeline_.SetOrigin(origins_->StackOf(op), origins_->TimeOf(op));
  }
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (ops_ != nullptr) ops_->push_back(op_);
    timeline_.OnEvent(event, block_size_bytes);
  }
  void OnFact(const trace::AnyFact& fact) override { timeline_.OnFact(fact); }

  // The timeline is to have no events: `ops` tell what they answer.
  void LeaveOutEvents() { timeline_.LeaveOutEvents(); }
  // Room for about as many events.
  void Reserve(std::size_t events) {
    timeline_.Reserve(events);
    if (ops_ != nullptr) ops_->reserve(events);
  }

  absl::StatusOr<timeline::Timeline> Finish() { return timeline_.Finish(); }

 private:
  std::vector<std::uint32_t>* ops_;
  const RequestOrigins* origins_;
  replay::TimelineSink timeline_;
  std::uint32_t op_ = 0;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_REQUEST_ORIGINS_H_
