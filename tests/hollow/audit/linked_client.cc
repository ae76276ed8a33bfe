// A program or library with a runtime linked in. Prints what each of its calls answered: 0 from the hollow device.
#include <cstddef>
#include <cstdio>

extern "C" {
int cudaMalloc(void** pointer, std::size_t bytes);
int cudaFree(void* pointer);
int cudaGetDeviceCount(int* count);
int cudaOfLaterYears();
}

extern "C" __attribute__((visibility("default"))) void ashlar_test_call() {
  void* pointer = nullptr;
  int count = 0;
  const int counted = cudaGetDeviceCount(&count);
  const int given = cudaMalloc(&pointer, std::size_t{1} << 20);
  std::printf("%d %d %d %d %d\n", counted, count, given, cudaFree(pointer), cudaOfLaterYears());
}

int main() { ashlar_test_call(); }
