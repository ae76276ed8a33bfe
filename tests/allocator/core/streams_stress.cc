#include "tests/allocator/core/streams_stress.h"

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "tests/allocator/core/threads_worker.h"

namespace ashlar::core {
namespace {

// A line for each value that is not what it must be.
class StressAccounting {
 public:
  void Expect(const char* what, std::uint64_t is, std::uint64_t must_be) {
    if (is != must_be) absl::StrAppend(&wrong_, what, " is ", is, ", must be ", must_be, "\n");
  }
  void ExpectNone(const char* what, const PoolStat& stat) {
    for (const PoolKind kind : {PoolKind::kAll, PoolKind::kSmall, PoolKind::kLarge}) {
      Expect(what, static_cast<std::uint64_t>(stat[kind].current), 0);
    }
    const std::int64_t sum = stat[PoolKind::kSmall].allocated + stat[PoolKind::kLarge].allocated;
    Expect(what, static_cast<std::uint64_t>(stat.all().allocated), static_cast<std::uint64_t>(sum));
  }
  const std::string& wrong() const { return wrong_; }

 private:
  std::string wrong_;
};

void CheckStatistics(const Stats& stats, const StreamsStressResult& result, std::uint64_t requested_bytes,
                     StressAccounting& books) {
  books.Expect("allocations", static_cast<std::uint64_t>(stats.allocation.all().allocated), result.allocations);
  books.Expect("requested bytes", static_cast<std::uint64_t>(stats.requested_bytes.all().allocated), requested_bytes);
  books.Expect("requests out of memory", stats.num_ooms, result.out_of_memory);
  books.ExpectNone("allocation", stats.allocation);
  books.ExpectNone("active", stats.active);
  books.ExpectNone("segment", stats.segment);
  books.ExpectNone("inactive_split", stats.inactive_split);
  books.ExpectNone("allocated_bytes", stats.allocated_bytes);
  books.ExpectNone("active_bytes", stats.active_bytes);
  books.ExpectNone("requested_bytes", stats.requested_bytes);
  books.ExpectNone("reserved_bytes", stats.reserved_bytes);
  books.ExpectNone("inactive_split_bytes", stats.inactive_split_bytes);
}

}  // namespace

StreamsStressResult RunStreamsStress(const StreamsStressPlan& plan) {
  device::SimDeviceOptions options;
  options.capacity_bytes = plan.capacity_bytes;
  LockedDevice device(options);
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  allocator.SetFailureReports(plan.reports_failures);
  Clock clock;
  Mailbox mail;
  std::vector<Worker> workers;
  for (int i = 0; i < plan.threads; ++i) {
    workers.emplace_back(i, static_cast<std::uint64_t>(i) + 1, allocator, device, clock, mail);
    workers.back().RunLong(plan.streams, 1 + plan.streams / 10);
  }
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker, &plan] { worker.Run(plan.operations); });
  for (std::thread& thread : threads) thread.join();
  workers.front().FreeMail();
  device.CompleteAllWork();
  // The pools of the workers' requests have a user each until they are released.
  for (std::uint64_t pool = 1; pool <= 3; ++pool) allocator.ReleasePool(PoolId{7, pool});
  allocator.EmptyCache();

  StreamsStressResult result;
  std::uint64_t requested_bytes = 0;
  for (const Worker& worker : workers) {
    result.allocations += worker.life_count();
    result.out_of_memory += worker.failures();
    requested_bytes += worker.requested_bytes();
  }
  StressAccounting books;
  CheckStatistics(allocator.stats(), result, requested_bytes, books);
  books.Expect("bytes that the device gave", device.used_bytes(), 0);
  books.Expect("streams that are remembered", Inspection(allocator).path_costs().arenas, 0);
  if (const absl::Status status = allocator.Validate(); !status.ok()) books.Expect(status.ToString().c_str(), 1, 0);
  result.wrong = books.wrong();
  return result;
}

}  // namespace ashlar::core
