// The long form of the stress over streams: streams_stress [threads [operations of each [streams ...]]].
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "allocator/base/units.h"
#include "tests/allocator/core/streams_stress.h"

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  std::vector<std::uint64_t> counts = {1, 10, 100, 1'000, 10'000, 100'000};
  if (argc > 3) counts.clear();
  for (int i = 3; i < argc; ++i) counts.push_back(number(i, 1));
  bool is_right = true;
  for (const std::uint64_t streams : counts) {
    const ashlar::core::StreamsStressResult result =
        ashlar::core::RunStreamsStress({.threads = static_cast<int>(number(1, 64)),
                                        .operations = static_cast<int>(number(2, 1'000'000)),
                                        .streams = streams,
                                        .capacity_bytes = 64 * ashlar::kGiB + streams * 8 * ashlar::kMiB,
                                        .reports_failures = false});
    std::printf("%llu streams: %llu allocations, %llu out of memory; %s\n", static_cast<unsigned long long>(streams),
                static_cast<unsigned long long>(result.allocations),
                static_cast<unsigned long long>(result.out_of_memory),
                result.wrong.empty() ? "the accounting adds up" : result.wrong.c_str());
    std::fflush(stdout);
    is_right &= result.wrong.empty();
  }
  return is_right ? 0 : 1;
}
