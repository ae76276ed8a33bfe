#include "commands/explain/page/page.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/page/column_blob.h"
#include "commands/explain/picture/picture.h"
#include "commands/shared/fleet_names.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

using answers::Picture;

Json StackTableJson(const Picture& picture) {
  Json labels = Json::Array();
  Json parts = Json::Array();
  Json starts = Json::Array({0});
  Json stack_frames = Json::Array();
  std::uint64_t count = 0;
  for (const answers::StackPicture& stack : picture.stacks) {
    labels.Append(stack.label);
    parts.Append(stack.part.empty() ? Json() : Json(stack.part));
    for (const std::uint32_t frame : stack.frames) stack_frames.Append(frame);
    starts.Append(count += stack.frames.size());
  }
  Json frames = Json::Array();
  for (const trace::Frame& frame : picture.frames) {
    frames.Append(Json::Array({frame.file, frame.line < 0 ? Json() : Json(frame.line), frame.function}));
  }
  return {{"labels", std::move(labels)},
          {"parts", std::move(parts)},
          {"frames", std::move(frames)},
          {"starts", std::move(starts)},
          {"stack_frames", std::move(stack_frames)}};
}

Json SettingsJson(const Picture& picture) {
  Json out = Json::Array();
  for (const auto& [key, value] : picture.settings) out.Append(Json::Array({key, value}));
  return out;
}

Json CausePicturesJson(const Picture& picture) {
  Json out = Json::Array();
  for (const answers::CausePicture& cause : picture.causes) {
    out.Append({{"name", cause.name}, {"moment", cause.moment}, {"blocks", cause.blocks}, {"stacks", cause.stacks}});
  }
  return out;
}

Json NamedEventsJson(const Picture& picture) {
  Json out = Json::Array();
  for (const answers::NamedEvent& named : picture.named_events) {
    out.Append({{"event", named.event}, {"moment", named.moment}});
  }
  return out;
}

std::string HtmlEscaped(const std::string& text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// JSON within an element of HTML: no "<" that could end it.
std::string ForScript(const std::string& json) { return absl::StrReplaceAll(json, {{"<", "\\u003c"}}); }

// Puts the printed JSON of another command at the end of an object.
absl::Status AddPrinted(absl::string_view key, const std::string& printed, std::string& object) {
  const absl::StatusOr<std::string> value = printed.empty() ? std::string("null") : CompactJson(printed);
  if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", value.status().message()));
  object.pop_back();
  absl::StrAppend(&object, ",\"", key, "\":", *value, "}");
  return absl::OkStatus();
}

}  // namespace

PageInput PageInputOf(const std::string& input) {
  if (input == "-") return {.name = "standard input"};
  const std::string name = input.substr(input.find_last_of('/') + 1);
  const std::optional<std::uint64_t> rank = answers::RankInName(name);
  return {.name = name, .rank = rank.has_value() ? std::optional(static_cast<int>(*rank)) : std::nullopt};
}

std::string PageTitle(const std::vector<std::string>& inputs) {
  std::string title = PageInputOf(inputs.front()).name;
  if (inputs.size() > 1) absl::StrAppend(&title, " and ", inputs.size() - 1, " more");
  return title;
}

answers::PictureLimits PictureLimitsOf(std::size_t inputs) {
  answers::PictureLimits out;
  if (inputs < 2) return out;
  out.observed_moments = out.observed_moments / inputs + 1;
  out.what_if_moments = out.what_if_moments / inputs + 1;
  out.observed_blocks = out.observed_blocks / inputs + 1;
  out.what_if_blocks = out.what_if_blocks / inputs + 1;
  return out;
}

// The numbers of the runs.
Json PageWriter::AddRuns(const answers::Explanation& explanation) {
  Json out = Json::Array();
  if (explanation.picture == nullptr) return out;
  for (const answers::RunPicture& run : explanation.picture->runs) {
    out.Append(runs_.size());
    runs_.push_back(RunJson(run, inputs_.size(), blobs_));
  }
  return out;
}

void PageWriter::AddInput(const PageInput& input, const answers::Explanation& explanation) {
  const Picture none;
  const bool has_picture = explanation.picture != nullptr;
  const Picture& picture = has_picture ? *explanation.picture : none;
  Json runs = AddRuns(explanation);
  inputs_.push_back({{"name", input.name},
                     {"rank", OrNull(input.rank)},
                     {"device", has_picture ? Json(picture.device) : Json()},
                     {"explanation", ExplanationJson(explanation)},
                     {"explanation_text", PrintExplanations({explanation}, /*as_json=*/false)},
                     {"runs", std::move(runs)},
                     {"stacks", StackTableJson(picture)},
                     {"texts", picture.texts},
                     {"holders", picture.holders},
                     {"settings", SettingsJson(picture)},
                     {"causes", CausePicturesJson(picture)},
                     {"evidence_moments", NamedEventsJson(picture)}});
}

absl::StatusOr<std::string> PageWriter::Finish(const PageFacts& facts) && {
  const std::pair<absl::string_view, absl::string_view> around_title =
      absl::StrContains(template_, kTitlePlace) && absl::StrContains(template_, kDocumentPlace)
          ? std::pair(template_.substr(0, template_.find(kTitlePlace)),
                      template_.substr(template_.find(kTitlePlace) + sizeof(kTitlePlace) - 1))
          : std::pair<absl::string_view, absl::string_view>();
  const std::size_t at = around_title.second.find(kDocumentPlace);
  if (at == absl::string_view::npos) return absl::InternalError("the page's template has no place for a document");
  Json index = {{"format", "ashlar-page"},
                {"version", 1},
                {"made_by", facts.made_by},
                {"title", facts.title},
                {"command", facts.command}};
  index["inputs"] = Json::Array();
  for (Json& input : inputs_) index["inputs"].Append(std::move(input));
  index["runs"] = Json::Array();
  for (Json& run : runs_) index["runs"].Append(std::move(run));
  std::string text = index.ToCompactText();
  absl::Status status = AddPrinted("diff", facts.diff, text);
  status.Update(AddPrinted("estimate", facts.estimate, text));
  status.Update(AddPrinted("dry_run", facts.dry_run, text));
  status.Update(AddPrinted("fleet", facts.fleet, text));
  status.Update(AddPrinted("fit", facts.fit, text));
  if (!status.ok()) return status;
  std::string out =
      absl::StrCat(around_title.first, HtmlEscaped(facts.title), around_title.second.substr(0, at),
                   "<script type=\"application/json\" id=\"ashlar-document\">", ForScript(text), "</script>\n");
  for (std::size_t i = 0; i < blobs_.size(); ++i) {
    absl::StrAppend(&out, "<script type=\"application/octet-stream\" id=\"ashlar-blob-", i, "\">", blobs_[i],
                    "</script>\n");
    std::string().swap(blobs_[i]);
  }
  absl::StrAppend(&out, around_title.second.substr(at + sizeof(kDocumentPlace) - 1));
  return out;
}

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
  if (has([](const BlockPicture& block) { return block.holder != answers::kNoHolder; })) {
    add("block.holder", [](const BlockPicture& block) { return block.holder; });
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
          {"left_out", {{"blocks", run.left_out.blocks}, {"share", run.left_out.share}}},
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
