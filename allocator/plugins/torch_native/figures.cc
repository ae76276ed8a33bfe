// What PyTorch asks of the allocator's devices: limits, statistics, sizes.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/segments.h"
#include "allocator/plugins/torch_native/statistics.h"

namespace ashlar::torch {
namespace {

// Of the process that gives memory back when nothing in the cache fits, as those of tensors sent to other processes.
int AskCallbacks(void*) {
  bool has_freed = false;
  for (const std::string& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys()) {
    has_freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
  }
  return has_freed ? 1 : 0;
}

// Since 2.12.
template <typename Stats>
std::int64_t RejectionsIn(const Stats& stats) {
  if constexpr (requires { stats.num_oom_rejections; }) return stats.num_oom_rejections;
  return 0;
}

}  // namespace

// Never destroyed: tensors are freed at the end of the process too.
NativeAllocator& NativeAllocator::Instance() {
  static NativeAllocator& instance = *new NativeAllocator;
  return instance;
}

NativeAllocator::NativeAllocator() : is_enabled_(std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") == nullptr) {
  for (int device = 0; device < kMostDevices; ++device) {
    devices_[static_cast<std::size_t>(device)] = std::make_unique<Device>(static_cast<c10::DeviceIndex>(device));
  }
  ObserveOpening(AtOpening);
}

void NativeAllocator::AtOpening(int device) {
  ashlar_allocator* const allocator = OpenAllocator(device);
  ashlar_add_free_memory_callback(allocator, AskCallbacks, nullptr);
  std::string conf;
  {
    const std::lock_guard<std::mutex> lock(Instance().mutex_);
    conf = Instance().changed_conf_;
  }
  if (!conf.empty()) ashlar_change_settings(allocator, conf.c_str());
  Instance().ObserveWhereWanted(static_cast<c10::DeviceIndex>(device));
}

ashlar_status NativeAllocator::ChangeSettings(const std::string& text, const std::string& conf) {
  ashlar_status status = ASHLAR_OK;
  ForEachOpen([&](int, ashlar_allocator* allocator) {
    if (status == ASHLAR_OK) status = ashlar_change_settings(allocator, conf.c_str());
  });
  if (status != ASHLAR_OK) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_conf_ = conf;
  settings_text_ = text;
  return ASHLAR_OK;
}

NativeAllocator::Device& NativeAllocator::Of(c10::DeviceIndex device) const {
  TORCH_CHECK(device >= 0 && device < kMostDevices && (device_count_ == 0 || device < device_count_),
              "Invalid device argument ", static_cast<int>(device), ": did you call init?");
  return *devices_[static_cast<std::size_t>(device)];
}

void NativeAllocator::Expect(ashlar_status status, c10::DeviceIndex device) {
  if (status != ASHLAR_OK) ThrowFailure(status, device);
}

double NativeAllocator::getMemoryFraction(c10::DeviceIndex device) { return Of(device).fraction; }

void NativeAllocator::setMemoryFraction(double fraction, c10::DeviceIndex device) {
  Device& its = Of(device);
  Expect(ashlar_set_memory_fraction(AllocatorOf(device), fraction), device);
  its.fraction = fraction;
}

std::int64_t NativeAllocator::RejectionsOf(c10::DeviceIndex device) {
  return RejectionsIn(StatisticsOf(OpenAllocator(device)));
}

native::DeviceStats NativeAllocator::getDeviceStats(c10::DeviceIndex device) {
  Device& its = Of(device);
  const std::lock_guard<std::mutex> lock(its.mutex);
  return Since(StatisticsOf(OpenAllocator(device)), its.reset_at);
}

void NativeAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  Device& its = Of(device);
  const std::lock_guard<std::mutex> lock(its.mutex);
  its.reset_at = StatisticsOf(OpenAllocator(device));
}

void NativeAllocator::resetPeakStats(c10::DeviceIndex device) {
  Of(device);
  if (ashlar_allocator* allocator = OpenAllocator(device); allocator != nullptr)
    Expect(ashlar_reset_peaks(allocator), device);
}

// A first guess of 0 becomes what the device has free.
void NativeAllocator::cacheInfo(c10::DeviceIndex device, std::size_t* largest) {
  Of(device);
  if (*largest == 0) {
    const c10::cuda::CUDAGuard guard(device);
    std::size_t total_bytes = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(largest, &total_bytes));
  }
  if (const ashlar_allocator* allocator = OpenAllocator(device); allocator != nullptr)
    *largest = LargestFreeBlock(allocator, *largest);
}

std::vector<native::StreamSegmentSize> NativeAllocator::getExpandableSegmentSizes(c10::DeviceIndex device) {
  Of(device);
  const ashlar_allocator* allocator = OpenAllocator(device);
  return allocator == nullptr ? std::vector<native::StreamSegmentSize>() : ExpandableSizesOf(allocator);
}

void NativeAllocator::attachOutOfMemoryObserver(native::OutOfMemoryObserver observer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_observers_.push_back(std::move(observer));
}

void NativeAllocator::attachOomRejectionObserver(native::OutOfMemoryObserver observer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  rejection_observers_.push_back(std::move(observer));
}

}  // namespace ashlar::torch
