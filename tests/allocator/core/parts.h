// The parts of an allocator put together without it: no fast path, no lock, one thread.
//
//   Parts parts({.capacity_bytes = 40 * kMiB}, "sync_just_enough:True");
//   const policy::Block* block = parts.Get(8 * kMiB);
//   parts.Drop(block);
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_PARTS_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_PARTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/ladder.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/pools.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/sink.h"

namespace ashlar::core {

// What the ledger told, as one word each: "segment_alloc 20 MiB".
class ToldSink final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t /*block_size_bytes*/) override {
    told.push_back(absl::StrCat(trace::ActionName(event.action), " ", event.size_bytes));
  }
  void OnFact(const trace::AnyFact& fact) override {
    const trace::codec::FactNumbers numbers = trace::codec::NumbersOf(fact);
    told.push_back(absl::StrCat("fact ", numbers.kind, " ", numbers.number));
  }
  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
};

struct Parts {
  explicit Parts(const device::SimDeviceOptions& of_device = {}, const std::string& conf = "")
      : device(of_device),
        ledger(*policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar),
               [this](policy::Lane& lane, const policy::AddressRange&) { gone_of.push_back(lane.stream); }) {}

  // nullptr where the last rung failed.
  policy::Block* Get(std::uint64_t bytes, Stream stream = Stream{0}, PoolId pool = {}) {
    const policy::Decision decision = ladder.Search({bytes, stream, pool});
    served = ladder.Serve(decision);
    if (served.block != nullptr) ledger.HandOut(*served.block, decision);
    return served.block;
  }
  void Drop(policy::Block* block) {
    ledger.BeginFree(*block);
    ledger.CompleteFree(block);
  }
  // Freed once the device's stream is done.
  void DropAfter(policy::Block* block, Stream stream) {
    ledger.BeginFree(*block);
    policy::Heap::MarkPending(block);
    block->pending_events = 1;
    pending.Add(device.RecordEvent(stream), block);
  }

  device::SimDevice device;
  std::vector<Stream> gone_of;  // the lanes that lost a segment
  Ledger ledger;
  PendingFrees pending;
  Pools pools{ledger};
  Limits limits{ledger.options(), device.GetMemoryInfo().total_bytes};
  Ladder ladder{ledger, device, pending, limits, pools};
  GrowthResult served;
};

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_PARTS_H_
