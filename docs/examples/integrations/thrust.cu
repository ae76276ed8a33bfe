// A vector that grows a hundred times, and a sort of it each time: without the allocator (`thrust plain`) and with it.
//
//   nvcc -std=c++17 -cudart shared -I PREFIX/include thrust.cu -L PREFIX/lib -lashlar -o thrust
#include <ashlar/thrust_mr.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>

#include <cstdio>
#include <cstring>
#include <numeric>

namespace {

constexpr int kRounds = 100;

// Numbers are copied to the device, back, and sorted there: in how many rounds they came back as they were.
template <typename Vector, typename Policy>
int GrowAndSort(Vector values, const Policy& policy) {
  int kept = 0;
  for (int round = 1; round <= kRounds; ++round) {
    thrust::host_vector<int> in(1000 * round);
    std::iota(in.begin(), in.end(), round);
    values.resize(in.size());
    thrust::copy(in.begin(), in.end(), values.begin());
    const thrust::host_vector<int> out(values.begin(), values.end());
    kept += in == out ? 1 : 0;
    thrust::sort(policy, values.begin(), values.end());
  }
  return kept;
}

int GrowPlain() { return GrowAndSort(thrust::device_vector<int>(), thrust::cuda::par); }

int GrowWithIntegration() {
  ashlar::ThrustResource resource;
  const ashlar::ThrustAllocator<int> allocator(&resource);
  const int kept =
      GrowAndSort(thrust::device_vector<int, ashlar::ThrustAllocator<int>>(allocator), thrust::cuda::par(allocator));
  const ashlar_statistics statistics = resource.allocator().Statistics();
  std::printf("%d requests took %d device calls\n", static_cast<int>(statistics.allocations),
              static_cast<int>(statistics.device_allocations));
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_plain = argc > 1 && std::strcmp(argv[1], "plain") == 0;
  const int kept = is_plain ? GrowPlain() : GrowWithIntegration();
  std::printf("kept in %d of %d rounds\n", kept, kRounds);
  return kept == kRounds ? 0 : 1;
}
