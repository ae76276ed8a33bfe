// What ONNX Runtime does with its external allocator: the functions come as text, of two devices, and are called
// without a stream or a device. Each line says "ok" or what did not hold.
#include <ashlar/onnxruntime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int failures = 0;

void Check(bool held, const char* what) {
  std::printf("%s: %s\n", held ? "ok" : "FAILS", what);
  failures += held ? 0 : 1;
}

template <typename Function>
std::string TextOf(Function* function) {
  return std::to_string(reinterpret_cast<std::uintptr_t>(function));
}
template <typename Function>
Function* FunctionOf(const std::string& text) {
  return reinterpret_cast<Function*>(std::strtoull(text.c_str(), nullptr, 10));
}

ashlar_statistics StatisticsOf(int device) {
  ashlar_allocator* allocator = nullptr;
  ashlar_process_allocator(device, &allocator);
  ashlar_statistics statistics{};
  statistics.struct_size = sizeof(statistics);
  ashlar_get_statistics(allocator, &statistics);
  return statistics;
}

void OfDevice(int device) {
  ashlar_onnxruntime_functions functions = {sizeof(functions), nullptr, nullptr, nullptr};
  Check(ashlar_onnxruntime(device, &functions) == ASHLAR_OK, "the functions of a device are to be had");
  const auto alloc = FunctionOf<void*(std::size_t)>(TextOf(functions.alloc));
  const auto free = FunctionOf<void(void*)>(TextOf(functions.free));
  const auto empty_cache = FunctionOf<void()>(TextOf(functions.empty_cache));

  void* const first = alloc(std::size_t{30} << 20);
  free(first);
  Check(alloc(std::size_t{30} << 20) == first, "what was freed is reused");
  Check(StatisticsOf(device).allocations == 2, "by the process's allocator of that device");
  Check(alloc(std::size_t{1} << 50) == nullptr, "out of memory is NULL");
  free(first);
  free(nullptr);
  Check(StatisticsOf(device).reserved_bytes > 0, "the cache is kept");
  empty_cache();
  Check(StatisticsOf(device).reserved_bytes == 0, "until it is emptied");
}

}  // namespace

int main() {
  OfDevice(0);
  OfDevice(1);
  ashlar_onnxruntime_functions functions = {sizeof(functions), nullptr, nullptr, nullptr};
  Check(ashlar_onnxruntime(2, &functions) != ASHLAR_OK, "there is no third device");
  std::printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
