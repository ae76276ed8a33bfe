// Sorts with Thrust: its allocations are made far below the program's own functions.
#include <thrust/device_vector.h>
#include <thrust/sort.h>

#include <cstdio>

static void SortThem(std::size_t count) {
  thrust::device_vector<int> values(count);
  thrust::sort(values.begin(), values.end());
}

int main() {
  SortThem(16 << 20);
  std::printf("bytes %zu\n", static_cast<std::size_t>(16 << 20) * sizeof(int));
}
