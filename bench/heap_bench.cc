// Cost of an allocate and free pair: the patterns of patterns.h over the subjects of subjects.h, each with its answers
// checked (answers.h). bench/compare runs it in rounds and prints the ratios.
#include <cstdlib>
#include <thread>

#include "bench/patterns.h"

namespace ashlar::bench {

std::int64_t PairCount() {
  const char* text = std::getenv("ASHLAR_BENCH_PAIRS");
  return text != nullptr && *text != '\0' ? std::strtoll(text, nullptr, 10) : 1'000'000;
}

void Register(const std::string& pattern, const std::vector<Named>& subjects, std::int64_t pairs,
              const std::vector<std::int64_t>& args) {
  const bool is_wall = pattern.rfind("threads_", 0) == 0;
  const auto add = [&](const Named& named) {
    auto* made = benchmark::RegisterBenchmark((pattern + "/" + named.subject).c_str(), named.function);
    made->Iterations(std::max<std::int64_t>(PairCount() / pairs, 1));
    if (is_wall) made->UseManualTime();
    return made;
  };
  for (const std::int64_t arg : args) {
    for (const Named& named : subjects) add(named)->Arg(arg);
  }
  if (!args.empty()) return;
  for (const Named& named : subjects) add(named);
}

}  // namespace ashlar::bench

int main(int argc, char** argv) {
  // glibc leaves out atomic operations while a process has had one thread only; programs on a GPU have more.
  std::thread([] {}).join();
  ashlar::bench::RegisterOneThread();
  ashlar::bench::RegisterTwoThreads();
  ashlar::bench::RegisterStreams();
#ifdef ASHLAR_BENCH_CUB
  benchmark::AddCustomContext("cub", ashlar::bench::RivalCub::Version());
#endif
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
