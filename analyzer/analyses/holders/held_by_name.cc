#include "analyzer/analyses/holders/held_by_name.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "analyzer/analyses/holders/variables.h"

namespace ashlar::analyses {
namespace {

constexpr char kNobody[] = "not_found";
constexpr char kOutOfMemory[] = "out_of_memory";
constexpr char kPeak[] = "peak";
constexpr double kLeastNamedToDecide = 0.8;     // of what is live
constexpr double kLeastNamedInPart = 0.95;      // where the look ended early
constexpr std::size_t kLeastStepsOfGrowth = 3;  // of which a holder has blocks, so that it is said to grow

using OwnersByAddress = absl::flat_hash_map<std::uint64_t, std::uint32_t>;

// "out_of_memory" in words.
std::string MomentInWords(const std::string& when) {
  if (when == kOutOfMemory) return "the out-of-memory error";
  if (when == kPeak) return "the newest peak that was looked at";
  if (when == "exit" || when == "exception") return "the program's end, when its functions had returned";
  if (when == "call") return "the moment of the call";
  if (absl::StartsWith(when, "signal")) return absl::StrCat("the ", when);
  return when.empty() ? "an unknown moment" : when;
}

// The live blocks of a moment as one number: each address comes in and goes out by the same term.
class LiveSets {
 public:
  explicit LiveSets(const timeline::Timeline& timeline) : changes_(timeline.event_count() + 1) {
    for (const timeline::BlockSpan& block : timeline.blocks()) {
      known_.insert(block.address);
      changes_[static_cast<std::size_t>(block.alloc_event + 1)] ^= TermOf(block.address);
      const timeline::EventIndex free = block.free_requested_event;
      if (free < timeline.event_count()) changes_[static_cast<std::size_t>(free + 1)] ^= TermOf(block.address);
    }
  }

  // The moment nearest to `near` at which just the named blocks were live, as far as the timeline knows their
  // addresses.
  std::optional<timeline::EventIndex> MomentOf(const trace::Holders& names, timeline::EventIndex near) const {
    std::uint64_t wanted = 0;
    bool has_any = false;
    for (const trace::HeldBlock& block : names.blocks) {
      if (!known_.contains(block.address)) continue;
      wanted ^= TermOf(block.address);
      has_any = true;
    }
    std::optional<timeline::EventIndex> out;
    std::uint64_t live = 0;
    for (std::size_t i = 0; has_any && i < changes_.size(); ++i) {
      live ^= changes_[i];
      const timeline::EventIndex event = static_cast<timeline::EventIndex>(i) - 1;
      const auto distance = [near](timeline::EventIndex at) { return at < near ? near - at : at - near; };
      if (live == wanted && (!out.has_value() || distance(event) < distance(*out))) out = event;
    }
    return out;
  }

 private:
  static std::uint64_t TermOf(std::uint64_t address) { return Rng(address).Next(); }

  std::vector<std::uint64_t> changes_;  // after event i - 1
  absl::flat_hash_set<std::uint64_t> known_;
};

// The event after which the names were taken: of a file that was written later, the failure.
std::optional<timeline::EventIndex> MomentOf(const trace::Holders& names, const timeline::Timeline& timeline) {
  if (names.when == kPeak) return LiveSets(timeline).MomentOf(names, timeline.allocated_peak().event);
  const bool is_failure = names.when == kOutOfMemory && !timeline.oom_events().empty();
  return is_failure ? timeline.oom_events().back() : timeline.last_event();
}

struct Gathered {
  HeldRow row;
  std::map<std::size_t, std::uint64_t> bytes_of_step;
};

std::optional<HolderGrowth> GrowthOf(const std::map<std::size_t, std::uint64_t>& bytes_of_step) {
  if (bytes_of_step.size() < kLeastStepsOfGrowth) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const auto& [step, of_step] : bytes_of_step) bytes += of_step;
  return HolderGrowth{bytes_of_step.begin()->first + 1, bytes_of_step.size(), bytes / bytes_of_step.size()};
}

bool IsBefore(const HeldRow& a, const HeldRow& b) {
  const auto key = [](const HeldRow& row) {
    const trace::Holder& holder = row.holder;
    return std::tie(holder.kind, holder.name, holder.file, holder.line, holder.function);
  };
  return a.bytes != b.bytes ? a.bytes > b.bytes : key(a) < key(b);
}

trace::Holder Nobody() {
  trace::Holder out;
  out.kind = kNobody;
  out.name = "not found";
  return out;
}

void SortRows(HeldByName& held) {
  std::sort(held.rows.begin(), held.rows.end(), IsBefore);
  for (std::size_t row = 0; row < held.rows.size(); ++row) {
    for (const std::size_t index : held.rows[row].indices) held.row_of[index] = row;
  }
}

}  // namespace

bool HeldByName::Decides(timeline::EventIndex at) const {
  const double least = bound.empty() ? kLeastNamedToDecide : kLeastNamedInPart;
  return at == moment && static_cast<double>(named_bytes) >= least * static_cast<double>(live_bytes);
}

std::optional<HeldByName> NameHolders(const trace::Holders& names, const trace::Snapshot& snapshot,
                                      const timeline::Timeline& timeline, const Steps& steps) {
  const std::optional<timeline::EventIndex> moment = MomentOf(names, timeline);
  if (!moment.has_value()) return std::nullopt;
  OwnersByAddress owners;
  for (const trace::HeldBlock& block : names.blocks) owners[block.address] = block.owner;
  std::vector<Gathered> gathered(names.holders.size() + 1);
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    gathered[i].row.holder = i < names.holders.size() ? names.holders[i] : Nobody();
  }
  HeldByName out;
  out.when = MomentInWords(names.when);
  out.bound = names.bound;
  absl::flat_hash_set<std::uint64_t> live;
  out.moment = *moment;
  for (std::size_t i = 0; i < timeline.blocks().size(); ++i) {
    const timeline::BlockSpan& block = timeline.blocks()[i];
    if (!block.IsLiveAfter(*moment)) continue;
    live.insert(block.address);
    const auto owner = owners.find(block.address);
    Gathered& of = gathered[owner == owners.end() ? names.holders.size() : owner->second];
    const std::uint64_t bytes = block.AskedBytes();
    of.row.bytes += bytes;
    ++of.row.blocks;
    of.row.indices.push_back(i);
    out.live_bytes += bytes;
    if (of.row.holder.kind != kNobody) out.named_bytes += bytes;
    if (const auto step = StepAt(steps, block.alloc_event)) of.bytes_of_step[*step] += bytes;
  }
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == timeline.device()) continue;
    for (const trace::SnapshotBlock& block : segment.blocks) live.insert(block.address);
  }
  out.not_live = static_cast<std::uint64_t>(
      std::count_if(names.blocks.begin(), names.blocks.end(),
                    [&live](const trace::HeldBlock& block) { return !live.contains(block.address); }));
  for (Gathered& of : gathered) {
    if (of.row.blocks == 0) continue;
    if (!IsOfOneModel(of.row.holder)) of.row.growth = GrowthOf(of.bytes_of_step);
    out.rows.push_back(std::move(of.row));
  }
  SortRows(out);
  return out;
}

std::optional<HeldByName> NamesAt(timeline::EventIndex at, const trace::Snapshot& snapshot,
                                  const timeline::Timeline& timeline, const Steps& steps) {
  std::optional<HeldByName> out;
  for (const std::optional<trace::Holders>* names : {&snapshot.holders, &snapshot.peak_holders}) {
    if (!names->has_value()) continue;
    std::optional<HeldByName> held = NameHolders(**names, snapshot, timeline, steps);
    if (held.has_value() && held->moment != at) held = HeldAt(*held, timeline, at);
    if (held.has_value() && (!out.has_value() || held->named_bytes > out->named_bytes)) out = std::move(held);
  }
  return out;
}

HeldByName HeldAt(const HeldByName& held, const timeline::Timeline& timeline, timeline::EventIndex at) {
  HeldByName out;
  out.when = held.when;
  out.bound = held.bound;
  out.not_live = held.not_live;
  out.moment = at;
  std::vector<HeldRow> rows(held.rows.size() + 1);
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    rows[i].holder = held.rows[i].holder;
    rows[i].growth = held.rows[i].growth;
  }
  rows.back().holder = Nobody();
  for (std::size_t i = 0; i < timeline.blocks().size(); ++i) {
    const timeline::BlockSpan& block = timeline.blocks()[i];
    if (!block.IsLiveAfter(at)) continue;
    const auto known = held.row_of.find(i);
    HeldRow& row = known == held.row_of.end() ? rows.back() : rows[known->second];
    row.bytes += block.AskedBytes();
    ++row.blocks;
    row.indices.push_back(i);
    out.live_bytes += block.AskedBytes();
    if (row.holder.kind != kNobody) out.named_bytes += block.AskedBytes();
  }
  for (HeldRow& row : rows) {
    if (row.blocks > 0) out.rows.push_back(std::move(row));
  }
  SortRows(out);
  return out;
}

}  // namespace ashlar::analyses
