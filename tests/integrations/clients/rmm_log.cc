// RMM's own logging_resource_adaptor over Ashlar's resource: a log as RMM writes it, of requests on several streams and
// threads, with failures and a request for nothing. It prints what was asked: rmm_log LOG
#include <ashlar/rmm.h>

#include <cstdio>
#include <mutex>
#include <random>
#include <rmm/mr/logging_resource_adaptor.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Told {
  std::mutex mutex;
  std::size_t allocations = 0, frees = 0, failures = 0, live = 0, peak = 0;
};

#ifdef ASHLAR_RMM_HAS_ANY_RESOURCE
using Logging = rmm::mr::logging_resource_adaptor;
Logging LoggingOf(ashlar::RmmResource& resource, const std::string& file) {
  return Logging(cuda::mr::any_resource<cuda::mr::device_accessible>(resource), file);
}
#else
using Logging = rmm::mr::logging_resource_adaptor<ashlar::RmmResource>;
Logging LoggingOf(ashlar::RmmResource& resource, const std::string& file) { return Logging(&resource, file); }
#endif

// One lock around a call and its count: the peak is that of the log's own order.
void Work(Logging& logging, cudaStream_t stream, unsigned seed, Told& told) {
  std::mt19937 random(seed);
  std::vector<std::pair<void*, std::size_t>> live;
  for (int i = 0; i < 500; ++i) {
    const std::lock_guard<std::mutex> lock(told.mutex);
    if (live.size() > 8 || (!live.empty() && random() % 3 == 0)) {
      const std::size_t at = random() % live.size();
      logging.deallocate(stream, live[at].first, live[at].second, 256);
      told.live -= live[at].second;
      ++told.frees;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const std::size_t bytes = 1 + random() % (4 << 20);
      live.emplace_back(logging.allocate(stream, bytes, 256), bytes);
      told.live += bytes;
      told.peak = told.live > told.peak ? told.live : told.peak;
      ++told.allocations;
    }
    if (i % 100 != 99) continue;
    try {
      (void)logging.allocate(stream, std::size_t{1} << 50, 256);
    } catch (const rmm::out_of_memory&) {
      ++told.failures;
    }
  }
  for (const auto& [memory, bytes] : live) {
    const std::lock_guard<std::mutex> lock(told.mutex);
    logging.deallocate(stream, memory, bytes, 256);
    told.live -= bytes;
    ++told.frees;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  cudaFree(nullptr);
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
  ashlar::RmmResource resource(allocator);
  Told told;
  {
    Logging logging = LoggingOf(resource, argv[1]);
    std::thread other([&] { Work(logging, streams[0], 1, told); });
    Work(logging, streams[1], 2, told);
    other.join();
    Work(logging, nullptr, 3, told);
    logging.flush();
  }
  std::printf("RMM %d.%02d: allocations %zu frees %zu failures %zu peak %zu stream %p\n", RMM_VERSION_MAJOR,
              RMM_VERSION_MINOR, told.allocations, told.frees, told.failures, told.peak,
              static_cast<void*>(streams[0]));
  return 0;
}
