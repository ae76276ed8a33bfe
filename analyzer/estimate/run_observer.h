// An observer watches a dry run: the beginning of each step, and every decision of the allocator in between.
#ifndef ASHLAR_ANALYZER_ESTIMATE_RUN_OBSERVER_H_
#define ASHLAR_ANALYZER_ESTIMATE_RUN_OBSERVER_H_

#include <cstdint>

#include "allocator/core/caching_allocator.h"
#include "allocator/trace/sink.h"
#include "kernels/tensor/memory.h"

namespace ashlar::estimate {

class RunObserver : public trace::EventSink {
 public:
  // Before the first request; both outlive the run.
  virtual void OnBegin(const core::CachingAllocator& /*allocator*/, const kernels::Memory& /*memory*/) {}
  virtual void OnStep(std::int64_t /*step*/) {}  // from 1
  // The last step has ended, its model is still there; what is freed afterwards is not told.
  virtual void OnEnd() {}
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_RUN_OBSERVER_H_
