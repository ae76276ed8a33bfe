// torch.cuda.memory_stats of one device, as PyTorch's class of them, from ashlar_torch_statistics.
//
//   DeviceStats stats = StatisticsOf(allocator);              // nullptr: a device that is not in use has zeros
//   stats = Since(stats, before);                             // sums since resetAccumulatedStats
//
// Threads: any.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_STATISTICS_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_STATISTICS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include "ashlar.h"

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::DeviceStats;

DeviceStats StatisticsOf(const ashlar_allocator* allocator);
DeviceStats Since(DeviceStats now, const DeviceStats& before);

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_STATISTICS_H_
