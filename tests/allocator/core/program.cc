#include "tests/allocator/core/program.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"
#include "tests/allocator/policy/model.h"

namespace ashlar::core {
namespace {

using policy::Compat;
using policy::FreeOrder;

class Recorder final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    model::Event out{event.action, event.address, event.size_bytes, Handle(event.stream), *event.pool, 0};
    if (event.action == trace::Action::kAlloc) out.block_size_bytes = block_size_bytes;
    events.push_back(out);
  }
  std::vector<model::Event> events;
};

std::string ToText(const model::Event& event) {
  return absl::StrCat(std::string(trace::ActionName(event.action)), " ", absl::Hex(event.address), " ",
                      event.size_bytes, " stream ", event.stream, " pool ", event.pool.second, " block ",
                      event.block_size_bytes);
}

// Each run of free_completed by address: their order among streams is not part of the policy.
void SortCompletedRuns(std::vector<model::Event>& events) {
  for (auto begin = events.begin(); begin != events.end();) {
    auto end = begin;
    while (end != events.end() && end->action == trace::Action::kFreeCompleted) ++end;
    std::sort(begin, end);
    begin = end == begin ? end + 1 : end;
  }
}

std::string EventDifference(std::vector<model::Event> product, std::vector<model::Event> expected) {
  SortCompletedRuns(product);
  SortCompletedRuns(expected);
  for (std::size_t i = 0; i < std::max(product.size(), expected.size()); ++i) {
    const std::string left = i < product.size() ? ToText(product[i]) : "nothing";
    const std::string right = i < expected.size() ? ToText(expected[i]) : "nothing";
    if (i >= product.size() || i >= expected.size() || product[i] != expected[i]) {
      return absl::StrCat("event ", i, ": product ", left, "; model ", right);
    }
  }
  return "";
}

std::string CounterDifference(const char* name, const PoolStat& product, const model::Counter& expected) {
  constexpr PoolKind kKinds[] = {PoolKind::kAll, PoolKind::kSmall, PoolKind::kLarge};
  for (std::size_t i = 0; i < 3; ++i) {
    const Stat& stat = product[kKinds[i]];
    if (stat.current == expected.current[i] && stat.peak == expected.peak[i] &&
        stat.allocated == expected.increases[i]) {
      continue;
    }
    return absl::StrCat(name, "[", i, "] current, peak, allocated: product ", stat.current, ", ", stat.peak, ", ",
                        stat.allocated, "; model ", expected.current[i], ", ", expected.peak[i], ", ",
                        expected.increases[i], "\n");
  }
  return "";
}

std::string CountDifference(const char* name, std::int64_t product, std::int64_t expected) {
  return product == expected ? "" : absl::StrCat(name, ": product ", product, "; model ", expected, "\n");
}

std::string StatsDifference(const Stats& product, const model::Stats& expected) {
  const auto count = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  std::string out = CounterDifference("allocation", product.allocation, expected.allocation);
  out += CounterDifference("active", product.active, expected.active);
  out += CounterDifference("segment", product.segment, expected.segment);
  out += CounterDifference("inactive_split", product.inactive_split, expected.inactive_split);
  out += CounterDifference("allocated_bytes", product.allocated_bytes, expected.allocated_bytes);
  out += CounterDifference("active_bytes", product.active_bytes, expected.active_bytes);
  out += CounterDifference("requested_bytes", product.requested_bytes, expected.requested_bytes);
  out += CounterDifference("reserved_bytes", product.reserved_bytes, expected.reserved_bytes);
  out += CounterDifference("inactive_split_bytes", product.inactive_split_bytes, expected.inactive_split_bytes);
  const auto oversize = [&out](const char* name, const Stat& stat, const model::Counter& counter) {
    out += CountDifference(name, stat.current, counter.current[0]);
    out += CountDifference(name, stat.peak, counter.peak[0]);
    out += CountDifference(name, stat.allocated, counter.increases[0]);
  };
  oversize("oversize_allocations", product.oversize_allocations, expected.oversize_allocations);
  oversize("oversize_segments", product.oversize_segments, expected.oversize_segments);
  out += CountDifference("num_alloc_retries", count(product.num_alloc_retries), expected.retries);
  out += CountDifference("num_ooms", count(product.num_ooms), expected.ooms);
  out += CountDifference("num_oom_rejections", count(product.num_oom_rejections), expected.rejections);
  out += CountDifference("num_stream_waits", count(product.num_stream_waits), expected.stream_waits);
  out += CountDifference("num_sync_all_streams", count(product.num_sync_all_streams), expected.sync_all);
  out += CountDifference("num_device_alloc", count(product.num_device_alloc), expected.device_alloc);
  out += CountDifference("num_device_free", count(product.num_device_free), expected.device_free);
  return out;
}

const char* Name(policy::BlockUse state) {
  switch (state) {
    case policy::BlockUse::kFree:
      return "free";
    case policy::BlockUse::kPending:
      return "pending";
    case policy::BlockUse::kUnmapped:
      return "unmapped";
    case policy::BlockUse::kLive:
      return "live";
  }
  return "no state";
}

const char* Name(model::State state) {
  switch (state) {
    case model::State::kFree:
      return "free";
    case model::State::kPending:
      return "pending";
    case model::State::kUnmapped:
      return "unmapped";
    case model::State::kLive:
      return "live";
  }
  return "no state";
}

std::string BlockText(std::uint64_t address, std::uint64_t size_bytes, const char* state,
                      std::uint64_t requested_bytes) {
  return absl::StrCat(absl::Hex(address), " + ", size_bytes, " ", state, ", requested ", requested_bytes, "\n");
}

std::string StateText(const policy::Heap& heap) {
  std::string out;
  for (const auto& [address, segment] : heap.segments()) {
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      const bool is_used = block->state == policy::BlockUse::kLive || block->state == policy::BlockUse::kPending;
      out += BlockText(block->address, block->size_bytes, Name(block->state), is_used ? block->requested_bytes : 0);
    }
  }
  return out;
}

std::string StateText(const model::Model& model) {
  std::string out;
  for (const auto& [address, block] : model.blocks()) {
    const bool is_used = block.state == model::State::kLive || block.state == model::State::kPending;
    out += BlockText(address, block.size, Name(block.state), is_used ? block.requested : 0);
  }
  return out;
}

class Pair {
 public:
  explicit Pair(const Program& program)
      : options_(*policy::ParseConf(program.conf, program.compat, policy::Keys::kAshlar)),
        device_(DeviceOptions(program)) {
    if (program.free_order) options_.free_order = *program.free_order;
    allocator_ = std::make_unique<CachingAllocator>(&device_, options_);
    model_ = std::make_unique<model::Model>(
        options_, model::DeviceSettings{program.capacity_bytes, program.events_complete_immediately,
                                        program.descending_addresses});
    if (program.is_recorded) allocator_->SetSink(&recorder_);
    is_recorded_ = program.is_recorded;
  }

  // One op on both; what differs after it.
  std::string Step(const Op& op) {
    if (std::string difference = Apply(op); !difference.empty()) return difference;
    return is_recorded_ ? StepDifference() : "";
  }

  std::string StepDifference() {
    if (std::string difference = EventDifference(std::exchange(recorder_.events, {}), model_->TakeEvents());
        !difference.empty() && is_recorded_) {
      return difference;
    }
    if (std::string difference = StatsDifference(allocator_->stats(), model_->stats()); !difference.empty()) {
      return difference;
    }
    if (device_.used_bytes() != model_->used_bytes()) {
      return absl::StrCat("device bytes: product ", device_.used_bytes(), "; model ", model_->used_bytes());
    }
    const absl::Status status = allocator_->Validate();
    return status.ok() ? "" : std::string(status.ToString());
  }

  std::string FinalDifference() {
    if (std::string difference = StepDifference(); !difference.empty()) return difference;
    const std::string product = StateText(Inspection(*allocator_).heap());
    const std::string expected = StateText(*model_);
    return product == expected ? "" : absl::StrCat("final blocks\nproduct:\n", product, "model:\n", expected);
  }

 private:
  static device::SimDeviceOptions DeviceOptions(const Program& program) {
    device::SimDeviceOptions options;
    options.capacity_bytes = program.capacity_bytes;
    options.events_complete_immediately = program.events_complete_immediately;
    if (program.descending_addresses) options.address_order = device::AddressOrder::kDescending;
    return options;
  }

  static PoolId Id(std::uint64_t pool) { return {0, pool}; }

  std::string Apply(const Op& op) {
    const auto live = live_.find(op.id);
    const bool is_live = live != live_.end();
    switch (op.kind) {
      case Op::kAlloc:
        return is_live || released_pools_.contains(op.pool) ? "" : Allocate(op);
      case Op::kFree:
        if (!is_live) return "";
        model_->Free(live->second->address);
        allocator_->Free(live->second);
        live_.erase(live);
        return "";
      case Op::kRecord:
        if (!is_live) return "";
        model_->RecordStream(live->second->address, Stream{op.stream});
        allocator_->RecordStream(live->second, Stream{op.stream});
        return "";
      case Op::kComplete:
        model_->CompleteAllWork();
        device_.CompleteAllWork();
        return "";
      case Op::kEmptyCache:
        model_->EmptyCache();
        allocator_->EmptyCache();
        return "";
      case Op::kConfigurePool:
        if (released_pools_.contains(op.pool)) return "";
        model_->ConfigurePool(Id(op.pool), (op.value & 1) != 0, (op.value & 2) != 0);
        allocator_->ConfigurePool(Id(op.pool), (op.value & 1) != 0, (op.value & 2) != 0);
        return "";
      case Op::kReleasePool:
        if (routed_pools_.contains(op.pool) || !released_pools_.insert(op.pool).second) return "";
        model_->ReleasePool(Id(op.pool));
        allocator_->ReleasePool(Id(op.pool));
        return "";
      case Op::kBeginPool: {
        if (released_pools_.contains(op.pool) || !routed_pools_.insert(op.pool).second) return "";
        const bool is_capture = (op.value & 1) != 0;
        model_->BeginPool(Id(op.pool), Stream{op.stream}, is_capture);
        const auto filter = [wanted = Stream{op.stream}](Stream stream) { return stream == wanted; };
        const RouteKind kind = is_capture ? RouteKind::kCapture : RouteKind::kPlain;
        return allocator_->BeginPool(Id(op.pool), filter, kind).ok() ? "" : "the product refuses the route";
      }
      case Op::kEndPool:
        if (routed_pools_.erase(op.pool) == 0) return "";
        model_->EndPool(Id(op.pool));
        return allocator_->EndPool(Id(op.pool)).ok() ? "" : "the product knows of no route";
      case Op::kSetFraction: {
        const double fraction = static_cast<double>(op.value) / 1000;
        model_->SetMemoryFraction(fraction);
        return allocator_->SetMemoryFraction(fraction).ok() ? "" : "the product refuses the fraction";
      }
    }
    return "an op that is none";
  }

  std::string Allocate(const Op& op) {
    const absl::StatusOr<Block*> block = allocator_->Allocate(op.value, Stream{op.stream}, Id(op.pool));
    const std::optional<std::uint64_t> expected = model_->Allocate(op.value, Stream{op.stream}, Id(op.pool));
    if (block.ok() && *block != nullptr) live_[op.id] = *block;
    if (!block.ok() && !absl::IsResourceExhausted(block.status())) return std::string(block.status().ToString());
    if (block.ok() && expected.has_value() && *block != nullptr && (*block)->address != *expected) {
      return absl::StrCat("product at ", (*block)->address, ", model at ", *expected);
    }
    if (block.ok() == expected.has_value()) return "";
    return absl::StrCat("only the ", block.ok() ? "model" : "product", " is out of memory");
  }

  policy::Options options_;
  device::SimDevice device_;
  Recorder recorder_;
  std::unique_ptr<CachingAllocator> allocator_;
  std::unique_ptr<model::Model> model_;
  std::map<std::uint32_t, Block*> live_;
  std::set<std::uint64_t> released_pools_;
  std::set<std::uint64_t> routed_pools_;
  bool is_recorded_ = true;
};

// ---- printing ----

std::string OpText(const Op& op) {
  constexpr const char* kNames[] = {"kAlloc",         "kFree",        "kRecord",      "kComplete",  "kEmptyCache",
                                    "kConfigurePool", "kReleasePool", "kSetFraction", "kBeginPool", "kEndPool"};
  return absl::StrCat("{Op::", kNames[op.kind], ", ", op.id, ", ", op.value, ", ", op.stream, ", ", op.pool, "}");
}

}  // namespace

std::string Difference(const Program& program) {
  Pair pair(program);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const std::string difference = pair.Step(program.ops[i]);
    if (!difference.empty()) return absl::StrCat("after op ", i, " ", OpText(program.ops[i]), ": ", difference);
  }
  return pair.FinalDifference();
}

Program Shrink(Program program) {
  for (std::size_t length = program.ops.size() / 2; length > 0;) {
    bool is_smaller = false;
    for (std::size_t begin = 0; begin + length <= program.ops.size();) {
      Program part = program;
      const auto first = part.ops.begin() + static_cast<std::ptrdiff_t>(begin);
      part.ops.erase(first, first + static_cast<std::ptrdiff_t>(length));
      if (Difference(part).empty()) {
        ++begin;
      } else {
        program = std::move(part);
        is_smaller = true;
      }
    }
    if (!is_smaller || length > 1) length /= 2;
  }
  return program;
}

std::string ToTestCase(const Program& program, const std::string& name) {
  constexpr const char* kCompats[] = {"kTorch113", "kTorch26", "kTorch210", "kTorch212", "kTorchLatest"};
  constexpr const char* kOrders[] = {"kAddress", "kPerBlockCounter", "kPerSegmentCounter"};
  std::string out = absl::StrCat("TEST(RegressionTest, ", name, ") {\n  Program program;\n");
  absl::StrAppend(&out, "  program.compat = policy::Compat::", kCompats[static_cast<int>(program.compat)], ";\n");
  if (program.free_order) {
    absl::StrAppend(&out, "  program.free_order = policy::FreeOrder::", kOrders[static_cast<int>(*program.free_order)],
                    ";\n");
  }
  absl::StrAppend(&out, "  program.conf = \"", program.conf, "\";\n");
  absl::StrAppend(&out, "  program.capacity_bytes = ", program.capacity_bytes, ";\n");
  if (program.events_complete_immediately) out += "  program.events_complete_immediately = true;\n";
  if (program.descending_addresses) out += "  program.descending_addresses = true;\n";
  if (!program.is_recorded) out += "  program.is_recorded = false;\n";
  out += "  program.ops = {\n";
  for (const Op& op : program.ops) absl::StrAppend(&out, "      ", OpText(op), ",\n");
  return out + "  };\n  EXPECT_EQ(Difference(program), \"\");\n}\n";
}

}  // namespace ashlar::core
