// The parts that an ashlar::Allocator holds. Thread rule: as the allocator's.
#ifndef ASHLAR_ALLOCATOR_API_ALLOCATOR_IMPL_H_
#define ASHLAR_ALLOCATOR_API_ALLOCATOR_IMPL_H_

#include <atomic>
#include <memory>
#include <mutex>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/fast_path.h"
#include "allocator/core/nvtx_pools.h"
#include "allocator/core/told_events.h"
#include "ashlar/allocator.h"

namespace ashlar {

struct Allocator::Impl {
  Impl(Device* device, const Options& options) : made_with(options), allocator(device, options) {}

  const Options made_with;

  core::NvtxPools shown_blocks;  // outlives the allocator, whose sink it is
  std::mutex observer_mutex;     // of the next, which outlives the allocator too
  std::unique_ptr<core::ToldEvents> observer;
  core::CachingAllocator allocator;
};

inline Allocator::Impl& Allocator::impl() const {
  Impl* const impl = impl_.load(std::memory_order_relaxed);
  if (impl == nullptr) [[unlikely]]
    core::StopAtGoneAllocator();
  return *impl;
}

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_API_ALLOCATOR_IMPL_H_
