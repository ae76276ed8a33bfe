// Where the requests of a what-if stand in the recorded run, so that replays of the same requests are drawn on one
// axis: the recorded event of each, its time and its stack. Requests that were projected follow at the pace of the
// recorded ones.
//
//   const RequestOrigins origins = RequestOrigins::OfProgram(program, observed, is_capacity_known, next);
//   origins.PlaceOf(op);   // 6768
//
// Immutable; safe from any thread.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_REQUEST_ORIGINS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_REQUEST_ORIGINS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/trace/event.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

class RequestOrigins {
 public:
  // Of a request trace: a request stands at its own number.
  RequestOrigins() = default;
  // Of remedies::WhatIfRequests(program, is_capacity_known), or of `next` where that is given. `observed` must outlive
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

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_REQUEST_ORIGINS_H_
