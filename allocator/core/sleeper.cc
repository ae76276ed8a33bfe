#include "allocator/core/sleeper.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/host_memory.h"
#include "allocator/base/units.h"
#include "allocator/core/pools.h"

namespace ashlar::core {
namespace {

using policy::BlockUse;

void ForEachBlock(const policy::Segment& segment, absl::FunctionRef<void(const policy::Block&)> visit) {
  for (const policy::Block* block = segment.first; block != nullptr; block = block->next) visit(*block);
}

}  // namespace

absl::Status Sleeper::ForEachSegment(const policy::PoolPair& pair, VisitSegment visit) const {
  for (const auto& [address, segment] : ledger_.heap().segments()) {
    if (segment->lane->pool->pair != &pair) continue;
    if (absl::Status status = visit(*segment); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Sleeper::CheckExpandable(const policy::PoolPair& pair) const {
  return ForEachSegment(pair, [&](const policy::Segment& segment) {
    if (segment.is_expandable) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        Pools::NameOf(pair), " cannot sleep: ", FormatBytes(segment.size_bytes), " of it are of cudaMalloc, whose ",
        "addresses go with the memory: tag the pool before it has any, or use expandable_segments:True or ",
        "policy:ashlar"));
  });
}

absl::Status Sleeper::WaitForUsers(const policy::PoolPair& pair, StreamsOfBlock recorded) {
  std::set<Stream> streams;
  ForEachSegment(pair, [&](const policy::Segment& segment) {
    streams.insert(segment.lane->stream);
    ForEachBlock(segment, [&](const policy::Block& block) {
      if (!block.has_recorded_streams) return;
      for (const Stream stream : recorded(block)) streams.insert(stream);
    });
    return absl::OkStatus();
  }).IgnoreError();
  for (const Stream stream : streams) {
    if (absl::Status status = device_.SynchronizeStream(stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::uint64_t Sleeper::LiveBytes(const policy::PoolPair& pair) const {
  std::uint64_t bytes = 0;
  ForEachSegment(pair, [&](const policy::Segment& segment) {
    ForEachBlock(segment, [&](const policy::Block& block) {
      if (block.state == BlockUse::kLive) bytes += block.size_bytes;
    });
    return absl::OkStatus();
  }).IgnoreError();
  return bytes;
}

std::uint64_t Sleeper::KeptInHost() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, sleeping] : asleep_) bytes += sleeping.kept == nullptr ? 0 : sleeping.kept->host_bytes();
  return bytes;
}

// Page-locked memory is the host's no more: a quarter of what it can give stays its own, where nobody says how much.
std::uint64_t Sleeper::RoomInHost(const SleepOptions& options) const {
  if (options.keep != Keep::kHost) return 0;
  if (options.host_limit_bytes == kNoHostLimit) return AvailableHostBytes().value_or(kNoHostLimit) / 4 * 3;
  return options.host_limit_bytes - std::min(options.host_limit_bytes, KeptInHost());
}

std::function<void(std::uint64_t)> Sleeper::Progress::OfPieces() {
  if (told == nullptr) return {};
  return [this](std::uint64_t bytes) {
    copied_bytes += bytes;
    told(copied_bytes, all_bytes);
  };
}

absl::Status Sleeper::Save(const policy::PoolPair& pair, const SleepOptions& options, Sleeping& out,
                           Progress& progress) {
  const std::uint64_t bytes = LiveBytes(pair);
  if (options.keep == Keep::kNothing || bytes == 0) return absl::OkStatus();
  const std::uint64_t host_bytes = std::min(bytes, RoomInHost(options));
  out.kept = std::make_unique<KeptBytes>(device_, KeptBytes::Room{host_bytes, bytes - host_bytes, options.folder});
  out.kept->TellAfter(progress.OfPieces());
  if (absl::Status status = out.kept->Open(); !status.ok()) return status;
  absl::Status status = ForEachSegment(pair, [&](const policy::Segment& segment) {
    absl::Status saved;
    ForEachBlock(segment, [&](const policy::Block& block) {
      if (block.state != BlockUse::kLive || !saved.ok()) return;
      out.places[block.address] = out.kept->saved_bytes();
      saved = out.kept->Save(block.address, block.size_bytes, segment.lane->stream);
    });
    return saved;
  });
  out.kept->TellAfter({});
  const absl::Status finished = out.kept->Finish();
  return status.ok() ? finished : status;
}

// Whatever the device says: the pages are its own now (ashlar/device.h).
void Sleeper::GiveBack(policy::PoolPair& pair) {
  std::int64_t calls = 0;
  ForEachSegment(pair, [&](const policy::Segment& segment) {
    for (const policy::PageRun& run : policy::Heap::PagesOf(segment, /*with_free=*/true)) {
      ladder_.errors().Note(device_.Unmap(run.range.address, run.range.size_bytes, run.page_bytes));
      ledger_.TellPages(/*are_there=*/false, run.range, *segment.lane);
      ++calls;
    }
    return absl::OkStatus();
  }).IgnoreError();
  ledger_.SetAsleep(pair, true, calls);
  ledger_.Note(trace::fact::PoolSlept{pair.small.id});
}

absl::StatusOr<SleepReport> Sleeper::Sleep(const Pairs& pairs, const SleepOptions& options, StreamsOfBlock recorded) {
  for (const policy::PoolPair* pair : pairs) {
    if (absl::Status status = CheckExpandable(*pair); !status.ok()) return status;
  }
  for (const policy::PoolPair* pair : pairs) {
    if (absl::Status status = WaitForUsers(*pair, recorded); !status.ok()) return status;
  }
  std::vector<PoolId> begun;
  absl::Status status;
  Progress progress{options.progress};
  for (const policy::PoolPair* pair : pairs) progress.all_bytes += LiveBytes(*pair);
  for (const policy::PoolPair* pair : pairs) {
    begun.push_back(pair->small.id);
    if (status.ok()) status = Save(*pair, options, asleep_[begun.back()], progress);
  }
  if (!status.ok()) {
    for (const PoolId& id : begun) asleep_.erase(id);
    return status;
  }
  SleepReport report{.returned_bytes = ledger_.heap().reserved_bytes()};
  for (policy::PoolPair* pair : pairs) {
    GiveBack(*pair);
    const KeptBytes* const kept = asleep_[pair->small.id].kept.get();
    report.kept_host_bytes += kept == nullptr ? 0 : kept->host_bytes();
    report.kept_file_bytes += kept == nullptr ? 0 : kept->file_bytes();
  }
  report.returned_bytes -= ledger_.heap().reserved_bytes();
  asleep_count_.store(asleep_.size(), std::memory_order_relaxed);
  return report;
}

// The way back.

std::vector<Sleeper::MappedRun> Sleeper::PagesToWake(const Pairs& pairs) const {
  std::vector<MappedRun> out;
  for (policy::PoolPair* pair : pairs) {
    ForEachSegment(*pair, [&](const policy::Segment& segment) {
      for (const policy::PageRun& run : policy::Heap::PagesOf(segment, !pair->MayReturn()))
        out.push_back({run, segment.lane});
      return absl::OkStatus();
    }).IgnoreError();
  }
  return out;
}

absl::Status Sleeper::Map(const policy::PageRun& run, std::uint64_t mapped_bytes) {
  if (limits_.AreExceeded(ledger_.heap().reserved_bytes() + mapped_bytes, run.range.size_bytes))
    return absl::ResourceExhaustedError("a memory limit is reached");
  return device_.Map(run.range.address, run.range.size_bytes, run.page_bytes);
}

absl::Status Sleeper::MapAll(const std::vector<MappedRun>& runs) {
  std::uint64_t mapped_bytes = 0;
  for (std::size_t mapped = 0; mapped < runs.size(); ++mapped) {
    if (absl::Status status = Map(runs[mapped].run, mapped_bytes); !status.ok()) {
      UnmapAgain(runs, mapped);
      return status;
    }
    mapped_bytes += runs[mapped].run.range.size_bytes;
  }
  return absl::OkStatus();
}

// What the cache holds goes back before memory has run out. Frees that are completed by that may leave pages without a
// live byte.
absl::Status Sleeper::MapAfterAll(const Pairs& pairs, std::vector<MappedRun>& runs) {
  runs = PagesToWake(pairs);
  const absl::Status status = MapAll(runs);
  if (!absl::IsResourceExhausted(status)) return status;
  ledger_.Note(trace::fact::CacheEmptied{});
  if (absl::Status emptied = ladder_.EmptyCache(); !emptied.ok()) return emptied;
  runs = PagesToWake(pairs);
  return MapAll(runs);
}

void Sleeper::UnmapAgain(const std::vector<MappedRun>& runs, std::size_t mapped) {
  for (std::size_t i = 0; i < mapped; ++i) {
    const policy::PageRun& run = runs[i].run;
    ladder_.errors().Note(device_.Unmap(run.range.address, run.range.size_bytes, run.page_bytes));
  }
}

// Blocks that were freed meanwhile are live no more, and none came.
absl::Status Sleeper::Load(const policy::PoolPair& pair, Progress& progress) {
  Sleeping& from = asleep_[pair.small.id];
  if (from.kept == nullptr) return absl::OkStatus();
  from.kept->TellAfter(progress.OfPieces());
  absl::Status status = ForEachSegment(pair, [&](const policy::Segment& segment) {
    absl::Status loaded;
    ForEachBlock(segment, [&](const policy::Block& block) {
      if (block.state != BlockUse::kLive || !loaded.ok()) return;
      const auto place = from.places.find(block.address);
      ASHLAR_CHECK(place != from.places.end());
      loaded = from.kept->Load(place->second, block.address, block.size_bytes, segment.lane->stream);
    });
    return loaded;
  });
  from.kept->TellAfter({});
  const absl::Status finished = from.kept->Finish();
  return status.ok() ? finished : status;
}

// Addresses that have no pages any more leave the heap while the pair still sleeps.
void Sleeper::NoteAwake(policy::PoolPair& pair, std::int64_t calls) {
  ledger_.Note(trace::fact::PoolWoken{pair.small.id});
  if (pair.MayReturn()) ladder_.errors().Note(ladder_.ReturnFreeOf(pair));
  ledger_.SetAsleep(pair, false, calls);
  asleep_.erase(pair.small.id);
}

Sleeper::Woken Sleeper::Wake(const Pairs& wanted, const SleepProgress& told) {
  Pairs pairs;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(pairs),
               [](const auto* pair) { return pair->is_asleep; });
  std::vector<MappedRun> runs;
  Woken out{.status = MapAfterAll(pairs, runs)};
  if (absl::IsResourceExhausted(out.status)) {
    for (const MappedRun& of : runs) out.lacking_bytes += of.run.range.size_bytes;
  }
  if (!out.status.ok()) return out;
  Progress progress{told};
  for (const policy::PoolPair* pair : pairs) {
    if (asleep_[pair->small.id].kept != nullptr) progress.all_bytes += LiveBytes(*pair);
  }
  for (policy::PoolPair* pair : pairs) out.status.Update(out.status.ok() ? Load(*pair, progress) : absl::OkStatus());
  if (!out.status.ok()) {
    UnmapAgain(runs, runs.size());
    return out;
  }
  for (const MappedRun& of : runs) ledger_.TellPages(/*are_there=*/true, of.run.range, *of.lane);
  for (policy::PoolPair* pair : pairs) {
    NoteAwake(*pair, std::count_if(runs.begin(), runs.end(), [&](const MappedRun& of) { return of.pair() == pair; }));
  }
  asleep_count_.store(asleep_.size(), std::memory_order_relaxed);
  return out;
}

}  // namespace ashlar::core
