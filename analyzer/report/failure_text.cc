#include "analyzer/report/failure_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kPinColumns = 79;  // of a line of 130, what is left for a label and since when its blocks live
constexpr std::size_t kPhaseWidth = 20;
constexpr std::size_t kMostRemarkBeforeLabel = 70;  // a longer one has the line for itself
constexpr std::size_t kReleaseLabelWidth = 40;
constexpr std::size_t kRemarkColumns = 90;  // of a line of 130, what is left for a remark

void AppendRow(const char* name, std::uint64_t bytes, const std::string& remark, std::string& out) {
  out += absl::StrFormat("  %-24s %11s  %s\n", name, FormatBytes(bytes), remark);
}

std::string Blocks(std::uint64_t count, const char* kind) {
  return absl::StrCat(FormatCount(count), " ", kind, count == 1 ? "block" : "blocks");
}

// Rungs that every reader should see, and those that had something to give.
bool IsWorthALine(const analyses::LadderRung& rung) {
  if (rung.name == "search again") return rung.would_serve;
  return rung.bytes > 0 || rung.name == "reuse a cached block" || rung.name == "obtain a new segment" ||
         rung.name == "release the whole cache";
}

void AppendElsewhere(const analyses::FailedRequest& failed, std::string& out) {
  if (failed.free_in_other_streams_bytes >= failed.request_bytes) {
    AppendRow("free for another stream", failed.free_in_other_streams_bytes,
              "one run, large enough: streams do not share", out);
  }
  if (failed.free_in_other_pools_bytes >= failed.request_bytes) {
    AppendRow("free in another pool", failed.free_in_other_pools_bytes, "one run, large enough: pools do not share",
              out);
  }
}

std::string ReleaseRemark(const analyses::ReleaseSet& release, const answers::FailureLines& failure) {
  std::string out = Blocks(release.blocks.size(), "live ");
  if (release.blocks.size() > 1) absl::StrAppend(&out, release.is_one_run ? " in a row" : " that hold whole segments");
  absl::StrAppend(&out, release.is_minimal ? ", proven the fewest bytes"
                                           : absl::StrCat(", the best found; less than ",
                                                          FormatBytes(release.lower_bound_bytes), " cannot do"));
  if (!failure.release.empty() && out.size() < kMostRemarkBeforeLabel) {
    const std::string more = failure.release.size() > 1 ? ", ..." : "";
    const std::size_t width = std::min(kReleaseLabelWidth, kRemarkColumns - out.size() - 2 - more.size());
    absl::StrAppend(&out, ": ", Shortened(Printable(failure.release.front().label), width), more);
  }
  return out;
}

void AppendRelease(const answers::FailureLines& failure, std::string& out) {
  const std::optional<analyses::ReleaseSet>& release = failure.request.release;
  if (!release.has_value()) {
    absl::StrAppend(&out, "  to make room             no set of live blocks is known to be enough\n");
  } else if (release->blocks.empty()) {
    absl::StrAppend(&out, "  to make room             nothing need be released: made again, it fits\n");
  } else {
    AppendRow("to make room, release", release->bytes, ReleaseRemark(*release, failure), out);
  }
}

std::string Since(const answers::PinLine& line) {
  if (!line.oldest_event.has_value()) return "alive since before the recording";
  std::string out = absl::StrCat("alive since event ", FormatCount(static_cast<std::uint64_t>(*line.oldest_event)));
  if (!line.phase.empty()) absl::StrAppend(&out, ", ", Shortened(Printable(line.phase), kPhaseWidth));
  return out;
}

}  // namespace

void AppendFailure(const std::optional<answers::FailureLines>& failure, std::string& out) {
  if (!failure.has_value()) return;
  const analyses::FailedRequest& failed = failure->request;
  absl::StrAppend(&out, "\nWHY IT FAILED   (", FormatBytes(failed.request_bytes), " on stream ", Handle(failed.stream),
                  ", ", failed.is_small_pool ? "small" : "large", " pool; what each rung could give)\n");
  for (const analyses::LadderRung& rung : failed.rungs) {
    if (!IsWorthALine(rung)) continue;
    std::string remark = rung.remark;
    if (rung.name == "release the whole cache" && failed.returned_bytes > 0) {
      remark = absl::StrCat(FormatBytes(failed.returned_bytes), " went back to the device just before");
    }
    AppendRow(rung.name.c_str(), rung.bytes, remark, out);
  }
  AppendElsewhere(failed, out);
  AppendRelease(*failure, out);
}

void AppendPins(const answers::PinLines& pins, std::string& out) {
  if (pins.lines.empty()) return;
  absl::StrAppend(&out,
                  "\nWHAT PINS THE SEGMENTS   (stranded bytes on the blocks that bound them, smaller ones more)\n");
  std::size_t longest = 0;
  std::size_t most = kReleaseLabelWidth;
  for (const answers::PinLine& line : pins.lines) {
    longest = std::max(longest, line.label.size());
    most = std::min(most, kPinColumns - 2 - Since(line).size());
  }
  const std::size_t width = std::min(longest, most);
  for (const answers::PinLine& line : pins.lines) {
    out += absl::StrFormat("  %11s  behind %12s of %11s  %-*s  %s\n", FormatBytes(line.blame_bytes),
                           Blocks(line.blocks, ""), FormatBytes(line.size_bytes), static_cast<int>(width),
                           Shortened(Printable(line.label), most), Since(line));
  }
  if (pins.other_blocks > 0) {
    out += absl::StrFormat("  %11s  behind %12s elsewhere\n", FormatBytes(pins.other_blame_bytes),
                           Blocks(pins.other_blocks, ""));
  }
}

}  // namespace ashlar::report
