// A dry run as a list of requests, for replays under other settings and in other memory.
//
//   RequestList list;
//   RunDry(model, options, device::AddressOrder::kAscending, &list);
//   replay.Run(list.requests());
#ifndef ASHLAR_ANALYZER_ESTIMATE_REQUEST_LIST_H_
#define ASHLAR_ANALYZER_ESTIMATE_REQUEST_LIST_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "allocator/trace/request.h"
#include "analyzer/estimate/run_observer.h"

namespace ashlar::estimate {

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

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_REQUEST_LIST_H_
