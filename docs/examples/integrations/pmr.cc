// Containers of the standard library in memory of the allocator:
//
//   g++ -std=c++17 -I PREFIX/include pmr.cc -L PREFIX/lib -lashlar -o pmr
#include <ashlar/pmr.h>

#include <cstdio>
#include <memory_resource>
#include <vector>

int main() {
  ashlar::PmrResource resource(ashlar::SharedAllocator::OpenHost(std::uint64_t{1} << 30));
  std::size_t sum = 0;
  for (std::size_t round = 0; round < 100; ++round) {
    std::pmr::vector<std::size_t> values(&resource);  // grows, and is gone with the round
    for (std::size_t i = 0; i < 100000; ++i) values.push_back(i);
    sum += values[round] + values.back();
  }
  const ashlar_statistics statistics = resource.allocator().Statistics();
  std::printf("%d requests took %d device calls, the sum is %zu\n", static_cast<int>(statistics.allocations),
              static_cast<int>(statistics.device_allocations), sum);
  return sum == 100 * 99999 + 99 * 50 ? 0 : 1;
}
