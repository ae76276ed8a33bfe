#include "analyzer/report/page/run_columns.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "analyzer/report/page/blob.h"

namespace ashlar::report {
namespace {

using answers::BlockPicture;
using answers::MomentColumns;
using answers::MomentRange;
using answers::RunPicture;
using answers::SegmentPicture;
using NumberColumn = std::vector<std::int64_t>;

// A level of detail is made of columns that are longer.
constexpr std::size_t kShortEnough = 1000;
constexpr std::size_t kCoarser = 16;

constexpr std::int64_t kSmallPool = 1;
constexpr std::int64_t kSizeIsMinimum = 2;
constexpr std::int64_t kRequestKnown = 4;
constexpr std::int64_t kExpandable = 2;

const char* RunKindName(answers::RunKind kind) {
  switch (kind) {
    case answers::RunKind::kObserved:
      return "observed";
    case answers::RunKind::kWhatIf:
      return "what_if";
    case answers::RunKind::kHost:
      return "host";
  }
  return "";
}

template <typename Pick>
NumberColumn CoarserBy(const NumberColumn& values, Pick pick) {
  NumberColumn out;
  out.reserve(values.size() / kCoarser + 1);
  for (std::size_t begin = 0; begin < values.size(); begin += kCoarser) {
    const std::size_t end = std::min(begin + kCoarser, values.size());
    std::int64_t picked = values[begin];
    for (std::size_t i = begin + 1; i < end; ++i) picked = pick(picked, values[i]);
    out.push_back(picked);
  }
  return out;
}

void AddSum(const std::string& name, const NumberColumn& values, BlobWriter& blob) {
  blob.Add(name, values);
  NumberColumn least = values;
  NumberColumn most = values;
  for (std::size_t width = kCoarser; least.size() > kShortEnough; width *= kCoarser) {
    least = CoarserBy(least, [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
    most = CoarserBy(most, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    blob.Add(absl::StrCat(name, ".min.", width), least);
    blob.Add(absl::StrCat(name, ".max.", width), most);
  }
}

void AddMoments(const MomentColumns& moments, BlobWriter& blob) {
  blob.Add("event", moments.events);
  blob.Add("x", moments.places);
  if (!moments.times_us.empty()) blob.Add("time_us", moments.times_us);
  const bool knows_requests = std::any_of(moments.requested_bytes.begin(), moments.requested_bytes.end(),
                                          [](std::int64_t bytes) { return bytes != answers::kUnknownBytes; });
  if (knows_requests) AddSum("requested", moments.requested_bytes, blob);
  AddSum("allocated", moments.allocated_bytes, blob);
  AddSum("active", moments.active_bytes, blob);
  AddSum("reserved", moments.reserved_bytes, blob);
  AddSum("stranded", moments.stranded_bytes, blob);
  AddSum("private_free", moments.private_free_bytes, blob);
}

std::int64_t SpanFlags(const BlockPicture& block) {
  return (block.is_small_pool ? kSmallPool : 0) | (block.size_is_minimum ? kSizeIsMinimum : 0) |
         (block.requested_bytes.has_value() ? kRequestKnown : 0);
}

std::int64_t SpanFlags(const SegmentPicture& segment) {
  return (segment.is_small_pool ? kSmallPool : 0) | (segment.is_expandable ? kExpandable : 0);
}

template <typename Items, typename ValueOf>
void AddItems(absl::string_view name, const Items& items, ValueOf value_of, BlobWriter& blob) {
  NumberColumn values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(static_cast<std::int64_t>(value_of(item)));
  blob.Add(name, values);
}

void AddBlocks(const std::vector<BlockPicture>& blocks, BlobWriter& blob) {
  const auto add = [&](const char* name, auto value_of) { AddItems(name, blocks, value_of, blob); };
  const auto has = [&](auto holds) { return std::any_of(blocks.begin(), blocks.end(), holds); };
  add("block.address", [](const BlockPicture& block) { return block.address; });
  add("block.size", [](const BlockPicture& block) { return block.size_bytes; });
  if (has([](const BlockPicture& block) { return block.requested_bytes.has_value(); })) {
    add("block.requested", [](const BlockPicture& block) { return block.requested_bytes.value_or(block.size_bytes); });
  }
  add("block.alloc", [](const BlockPicture& block) { return block.alloc; });
  add("block.freed", [](const BlockPicture& block) { return block.freed; });
  add("block.done", [](const BlockPicture& block) { return block.done; });
  add("block.stack", [](const BlockPicture& block) { return block.stack; });
  if (has([](const BlockPicture& block) { return block.text != answers::kNoText; })) {
    add("block.text", [](const BlockPicture& block) { return block.text; });
  }
  add("block.stream", [](const BlockPicture& block) { return block.stream; });
  add("block.pool", [](const BlockPicture& block) { return block.pool; });
  add("block.flags", [](const BlockPicture& block) { return SpanFlags(block); });
  add("block.alloc_event", [](const BlockPicture& block) { return block.alloc_event; });
}

void AddSegments(const std::vector<SegmentPicture>& segments, BlobWriter& blob) {
  const auto add = [&](const char* name, auto value_of) { AddItems(name, segments, value_of, blob); };
  NumberColumn starts = {0};
  std::vector<answers::ExtentPicture> extents;
  for (const SegmentPicture& segment : segments) {
    extents.insert(extents.end(), segment.extents.begin(), segment.extents.end());
    starts.push_back(static_cast<std::int64_t>(extents.size()));
  }
  blob.Add("segment.extent", starts);
  add("segment.end", [](const SegmentPicture& segment) { return segment.end; });
  add("segment.stream", [](const SegmentPicture& segment) { return segment.stream; });
  add("segment.pool", [](const SegmentPicture& segment) { return segment.pool; });
  add("segment.flags", [](const SegmentPicture& segment) { return SpanFlags(segment); });
  add("segment.stack", [](const SegmentPicture& segment) { return segment.stack; });
  AddItems("extent.moment", extents, [](const auto& extent) { return extent.moment; }, blob);
  AddItems("extent.address", extents, [](const auto& extent) { return extent.address; }, blob);
  AddItems("extent.size", extents, [](const auto& extent) { return extent.size_bytes; }, blob);
}

Json ColumnsJson(const RunPicture& run, std::vector<std::string>& blobs) {
  Json columns = Json::Object();
  BlobWriter sums;
  AddMoments(run.moments, sums);
  sums.MoveTo(blobs, columns);
  BlobWriter spans;
  AddBlocks(run.blocks, spans);
  AddSegments(run.segments, spans);
  spans.MoveTo(blobs, columns);
  return columns;
}

Json PeakPictureJson(const answers::PeakPicture& peak) { return {{"moment", peak.moment}, {"bytes", peak.bytes}}; }

Json StepRangesJson(const std::vector<MomentRange>& steps) {
  Json out = Json::Array();
  for (const MomentRange& step : steps) out.Append(Json::Array({step.begin, step.end}));
  return out;
}

Json PhaseRangesJson(const std::vector<answers::PhasePicture>& phases) {
  Json out = Json::Array();
  for (const answers::PhasePicture& phase : phases) {
    out.Append({{"name", phase.name}, {"begin", phase.moments.begin}, {"end", phase.moments.end}});
  }
  return out;
}

Json StreamsJson(const std::vector<Stream>& streams) {
  Json out = Json::Array();
  for (const Stream stream : streams) {
    const bool is_default = Handle(stream) == 0;
    out.Append(is_default ? std::string("0") : absl::StrCat("0x", absl::Hex(Handle(stream))));
  }
  return out;
}

Json PoolsJson(const std::vector<PoolId>& pools) {
  Json out = Json::Array();
  for (const PoolId& pool : pools) {
    out.Append(pool.IsDefault() ? std::string("default") : absl::StrCat(pool.first, ":", pool.second));
  }
  return out;
}

}  // namespace

Json RunJson(const RunPicture& run, std::size_t input, std::vector<std::string>& blobs) {
  const bool has_time = !run.moments.times_us.empty();
  return {{"kind", RunKindName(run.kind)},
          {"input", input},
          {"name", run.name},
          {"what_if_row", OrNull(run.what_if_row)},
          {"event_count", run.event_count},
          {"moment_count", run.moments.size()},
          {"is_thinned", run.is_thinned},
          {"capacity_bytes", OrNull(run.capacity_bytes)},
          {"has_time", has_time},
          {"start_time_us", has_time ? Json(run.moments.times_us.front()) : Json()},
          {"verdict_moment", run.verdict},
          {"peaks",
           {{"allocated", PeakPictureJson(run.allocated_peak)},
            {"active", PeakPictureJson(run.active_peak)},
            {"reserved", PeakPictureJson(run.reserved_peak)}}},
          {"failures", run.failures},
          {"projected_from", OrNull(run.projected_from)},
          {"steps", StepRangesJson(run.steps)},
          {"phases", PhaseRangesJson(run.phases)},
          {"streams", StreamsJson(run.streams)},
          {"pools", PoolsJson(run.pools)},
          {"columns", ColumnsJson(run, blobs)}};
}

}  // namespace ashlar::report
