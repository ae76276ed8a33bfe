#include "allocator/core/oom_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "allocator/core/accounting.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::core {
namespace {

constexpr std::size_t kMostPins = 3;

std::vector<Occupied> BlocksInUse(const trace::SnapshotSegment& segment) {
  std::vector<Occupied> out;
  for (const trace::SnapshotBlock& block : segment.blocks) {
    if (block.state != trace::BlockState::kFree) out.push_back({block.address, block.size_bytes});
  }
  return out;
}

// What the walk over the segments finds out for one request.
class Finder {
 public:
  Finder(const FailedAllocation& failed, const policy::Options& options, OomReport& out)
      : failed_(failed), options_(options), is_small_(policy::IsSmall(failed.rounded_bytes)), out_(out) {
    options_.expandable_segments |= failed.takes_pages;
  }

  void Visit(const trace::SnapshotSegment& segment) {
    const std::vector<Occupied> blocks = BlocksInUse(segment);
    if (segment.pool.IsDefault()) AddPins(segment, blocks);
    if (segment.is_small_pool != is_small_ || segment.pool != failed_.pool) return;
    const std::uint64_t run = LargestRun(segment, blocks);
    if (segment.stream != failed_.stream) {
      out_.largest_other_stream_bytes = std::max(out_.largest_other_stream_bytes, run);
      return;
    }
    if (segment.is_expandable && !options_.expandable_segments) return;  // passed over while the option is off
    cached_run_ = std::max(cached_run_, run);
    if (!segment.is_expandable) return;
    const std::uint64_t end = blocks.empty() ? segment.address : blocks.back().End();
    tail_ = std::max(tail_, segment.address + segment.size_bytes - end);
  }

  void Finish() {
    const std::uint64_t free_bytes = failed_.device_free_bytes;
    out_.largest_cached_bytes = policy::LargestInRun(is_small_, cached_run_);
    out_.largest_servable_bytes = out_.largest_cached_bytes;
    if (policy::IsServedFromDevice(failed_.rounded_bytes, free_bytes, tail_, options_)) return;
    out_.largest_servable_bytes =
        std::max(out_.largest_cached_bytes, policy::LargestFromDevice(is_small_, free_bytes, tail_, options_));
  }

 private:
  static std::uint64_t LargestRun(const trace::SnapshotSegment& segment, absl::Span<const Occupied> blocks) {
    std::uint64_t largest = 0;
    std::uint64_t at = segment.address;
    for (const Occupied& block : blocks) {
      largest = std::max(largest, block.address - at);
      at = block.End();
    }
    return std::max(largest, segment.address + segment.size_bytes - at);
  }

  void AddPins(const trace::SnapshotSegment& segment, absl::Span<const Occupied> blocks) {
    const std::vector<std::uint64_t> blame =
        BlameOfBlocks(segment.address, segment.address + segment.size_bytes, blocks);
    for (std::size_t i = 0; i < blame.size(); ++i) {
      if (blame[i] == 0) continue;
      ++out_.pin_count;
      AddPin({blocks[i].address, blocks[i].size_bytes, blame[i], segment.stream, {}});
    }
  }

  // Segments come by address, so equal ones stay in that order.
  void AddPin(const HolePin& pin) {
    const auto less = std::find_if(out_.pins.begin(), out_.pins.end(),
                                   [&](const HolePin& other) { return other.blame_bytes < pin.blame_bytes; });
    if (less == out_.pins.end() && out_.pins.size() == kMostPins) return;
    out_.pins.insert(less, pin);
    if (out_.pins.size() > kMostPins) out_.pins.pop_back();
  }

  const FailedAllocation& failed_;
  policy::Options options_;
  const bool is_small_;
  OomReport& out_;
  std::uint64_t cached_run_ = 0;
  std::uint64_t tail_ = 0;
};

// Held by others, at least.
std::uint64_t OthersBytes(const OomFigures& figures) {
  const std::uint64_t outside = figures.outside_bytes.value_or(0);
  return outside - std::min(outside, kMostOwnContextBytes);
}

// What outside the cache stood in the way; empty = nothing that is known.
std::string Circumstance(const OomReport& report) {
  const FailedAllocation& failed = report.failed;
  if (failed.limit_bytes.has_value()) {
    return absl::StrCat("limit: this allocator may hold ", FormatBytes(*failed.limit_bytes), " of the device in all");
  }
  if (report.largest_other_stream_bytes >= failed.rounded_bytes) {
    return absl::StrCat("streams: another stream has ", FormatBytes(report.largest_other_stream_bytes),
                        " free in one piece; streams do not share what the cache holds");
  }
  return "";
}

std::string PoolText(const FailedAllocation& failed) {
  std::string out = policy::IsSmall(failed.rounded_bytes) ? "small pool" : "large pool";
  if (!failed.pool.IsDefault()) absl::StrAppend(&out, " of (", failed.pool.first, ", ", failed.pool.second, ")");
  return out;
}

void AppendParts(const OomReport& report, std::vector<std::string>& out) {
  const Accounting& parts = report.parts;
  out.push_back(
      report.outside_bytes.has_value()
          ? absl::StrCat("where ", FormatBytes(report.failed.device_total_bytes), " went (parts sum exactly):")
          : absl::StrCat("where ", FormatBytes(parts.reserved_bytes), " of this allocator went:"));
  const std::string allocated =
      parts.live_bytes.has_value()
          ? absl::StrCat("live ", FormatBytes(*parts.live_bytes), ", rounding ", FormatBytes(*parts.rounding_bytes))
          : absl::StrCat("live and rounding ", FormatBytes(parts.allocated_bytes));
  out.push_back(absl::StrCat("  ", allocated, ", pending ", FormatBytes(parts.pending_bytes), ", stranded ",
                             FormatBytes(parts.stranded_bytes), " in ",
                             FormatCounted(parts.stranded_segment_count, "segment"), " behind ",
                             FormatCounted(parts.pinning_block_count, "block")));
  out.push_back(absl::StrCat("  whole-free ", FormatBytes(parts.whole_free_bytes), ", private pools ",
                             FormatBytes(parts.private_pool_bytes), ", outside ",
                             report.outside_bytes.has_value() ? FormatBytes(*report.outside_bytes) : "not known",
                             ", free on the device ", FormatBytes(report.failed.device_free_bytes)));
}

void AppendPins(const OomReport& report, std::vector<std::string>& out) {
  if (report.pins.empty()) return;
  out.push_back(absl::StrCat("what pins the segments, the worst of ", FormatCounted(report.pin_count, "block"), ":"));
  for (const HolePin& pin : report.pins) {
    out.push_back(absl::StrCat("  ", FormatBytes(pin.blame_bytes), " behind ", FormatBytes(pin.size_bytes), " at 0x",
                               absl::Hex(pin.address), ", stream ", Handle(pin.stream),
                               pin.place.empty() ? "" : ", from ", pin.place));
  }
}

}  // namespace

OomJudgement JudgeOom(const OomFigures& figures) {
  const std::uint64_t usable = figures.reserved_bytes + figures.device_free_bytes;
  const std::int64_t headroom = Signed(usable) - Signed(figures.live_bytes) - Signed(figures.request_bytes);
  if (figures.device_free_bytes >= figures.segment_bytes) return {OomKind::kLimit, headroom};
  const std::int64_t others = Signed(OthersBytes(figures));
  if (others > std::max<std::int64_t>(headroom, 0) && headroom + others >= 0) return {OomKind::kOutside, headroom};
  if (headroom < 0) return {OomKind::kCapacity, headroom};
  const bool is_full = static_cast<double>(headroom) < kNearlyFullShare * static_cast<double>(usable);
  return {is_full ? OomKind::kNearlyFull : OomKind::kFragmentation, headroom};
}

std::vector<std::string> OomSentences(const OomJudgement& judgement, const OomFigures& figures) {
  const std::int64_t headroom = judgement.headroom_bytes;
  const std::uint64_t free_bytes = figures.device_free_bytes;
  const std::string segment = FormatBytes(figures.segment_bytes);
  switch (judgement.kind) {
    case OomKind::kCapacity:
      return {absl::StrCat("capacity: even ", kWithoutHoles, " the request is short by ", FormatSignedBytes(-headroom),
                           kNoSettingHelps)};
    case OomKind::kNearlyFull:
      return {absl::StrCat("nearly full: ", kWithoutHoles, " the request would fit with ", FormatSignedBytes(headroom),
                           " to spare", kNonePacksAsWell)};
    case OomKind::kOutside:
      return {absl::StrCat("another process or library: ", FormatBytes(*figures.outside_bytes),
                           " of the device are held outside this allocator, and a CUDA context takes at most ",
                           FormatBytes(kMostOwnContextBytes), " of that")};
    case OomKind::kLimit:
      return {absl::StrCat("limit: the device still had ", FormatBytes(free_bytes), " free for a segment of ", segment,
                           "; a memory fraction or another limit stopped it")};
    case OomKind::kFragmentation:
      return {absl::StrCat("fragmentation: ", kWithoutHoles, " the request fits with ", FormatSignedBytes(headroom),
                           " to spare"),
              absl::StrCat("the free memory misses the new segment of ", segment, " by ",
                           FormatBytes(figures.segment_bytes - free_bytes))};
  }
  return {};
}

OomReport MakeOomReport(const FailedAllocation& failed, absl::Span<const trace::SnapshotSegment> segments,
                        const policy::Options& options) {
  OomReport out;
  out.failed = failed;
  out.parts = Account(segments);
  const std::uint64_t accounted = out.parts.reserved_bytes + failed.device_free_bytes;
  if (failed.device_total_bytes >= accounted) out.outside_bytes = failed.device_total_bytes - accounted;
  out.figures = {out.parts.reserved_bytes, out.parts.live_bytes.value_or(out.parts.allocated_bytes),
                 failed.device_free_bytes, out.outside_bytes,
                 failed.rounded_bytes,     failed.segment_bytes};
  out.judgement = JudgeOom(out.figures);
  Finder finder(failed, options, out);
  for (const trace::SnapshotSegment& segment : segments) finder.Visit(segment);
  finder.Finish();
  return out;
}

std::string OomMessage(const FailedAllocation& failed, std::uint64_t reserved_bytes) {
  return absl::StrCat("out of memory: ", FormatBytes(failed.request_bytes), " requested (a segment of ",
                      FormatBytes(failed.segment_bytes),
                      failed.is_rejected ? ", rejected by throw_on_cudamalloc_oom" : "", "), device free ",
                      FormatBytes(failed.device_free_bytes), " of ", FormatBytes(failed.device_total_bytes),
                      ", reserved ", FormatBytes(reserved_bytes));
}

std::vector<std::string> OomLines(const OomReport& report) {
  const FailedAllocation& failed = report.failed;
  std::vector<std::string> out;
  out.push_back(absl::StrCat("verdict: ", absl::StrJoin(OomSentences(report.judgement, report.figures), "; ")));
  if (std::string text = Circumstance(report); !text.empty()) out.push_back(std::move(text));
  out.push_back(absl::StrCat("largest size that would have been served: ", FormatBytes(report.largest_servable_bytes),
                             " (from the cache ", FormatBytes(report.largest_cached_bytes), "), stream ",
                             Handle(failed.stream), ", ", PoolText(failed)));
  AppendParts(report, out);
  AppendPins(report, out);
  return out;
}

}  // namespace ashlar::core
