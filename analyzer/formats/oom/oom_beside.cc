// The table of nvidia-smi, as people paste it beside a message: what is used of each device, and by whom.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {
namespace {

constexpr std::size_t kMostTableBytes = 12'000;  // squeezed
constexpr int kMostDevices = 64;

// "23801MiB/24576MiB|"
bool TakeUsage(Cursor& cursor, int device, OomMessage& message) {
  Cursor look = cursor;
  const std::optional<Figure> used = look.TakeFigure();
  if (!used || !look.Take("/")) return false;
  const std::optional<Figure> total = look.TakeFigure();
  if (!total || !look.Take("|")) return false;
  message.details.push_back({absl::StrCat("device_used.", device), *used});
  message.details.push_back({absl::StrCat("device_total.", device), *total});
  cursor = look;
  return true;
}

// A row of the processes, squeezed: "0 N/AN/A1717Cpython23790MiB|", and of older drivers "0 1717Cpython23790MiB|".
void TakeProcesses(Cursor cursor, OomMessage& message, std::size_t* end) {
  while (cursor.Rest().size() > 1 && cursor.at() < *end + kMostTableBytes) {
    constexpr std::size_t kMostRowBytes = 400;
    const std::size_t bar = cursor.Rest().find("MiB|");
    if (bar > kMostRowBytes) return;  // none is farther than any
    const absl::string_view row = cursor.Rest().substr(0, bar);
    const std::size_t line = row.find_last_of("|=+");
    const std::size_t begin = cursor.at() + (line == absl::string_view::npos ? 0 : line + 1);
    std::size_t digits = cursor.at() + bar;
    const absl::string_view all = cursor.Rest();
    std::size_t first = bar;
    while (first > 0 && IsDigit(all[first - 1])) --first;
    digits = cursor.at() + first;
    Cursor read = cursor;
    read.MoveTo(begin);
    ProcessUse process;
    if (const std::optional<std::int64_t> device = read.TakeInteger(); device && *device < kMostDevices) {
      process.device = static_cast<int>(*device);
    }
    read.Take(" ");
    read.Take("N/AN/A");
    process.pid = read.TakeInteger();
    read.MoveTo(digits);
    process.used = read.TakeFigure();
    cursor.MoveTo(cursor.at() + bar + 4);
    if (!process.device || !process.pid || !process.used) continue;
    message.processes.push_back(std::move(process));
    *end = cursor.at();
  }
}

std::optional<Finding> ParseNvidiaSmi(const SqueezedText& text, std::size_t at) {
  Finding finding = Begin("nvidia-smi", at);
  finding.kind = FindingKind::kBeside;
  Cursor cursor(text, at);
  const std::size_t most = std::min(text.text().size(), at + kMostTableBytes);
  const std::size_t processes = text.text().substr(at, kMostTableBytes).find("Processes:");
  const std::size_t usages_end = processes == absl::string_view::npos ? most : at + processes;
  int device = 0;
  while (device < kMostDevices && cursor.at() < usages_end && cursor.SkipPast("|", usages_end - cursor.at())) {
    if (TakeUsage(cursor, device, finding.message)) {
      ++device;
      finding.end = cursor.at();
    }
  }
  if (device == 0) return std::nullopt;
  if (processes != absl::string_view::npos) {
    cursor.MoveTo(usages_end);
    if (cursor.SkipPast("GPUMemory", 200)) cursor.SkipPast("Usage", 8);
    finding.end = std::max(finding.end, cursor.at());
    TakeProcesses(cursor, finding.message, &finding.end);
  }
  return finding;
}

}  // namespace

const std::vector<Anchor>& BesideAnchors() {
  static const auto& anchors =
      *new std::vector<Anchor>{{"|NVIDIA-SMI", &ParseNvidiaSmi}, {"NVIDIA-SMI", &ParseNvidiaSmi}};
  return anchors;
}

}  // namespace ashlar::formats::oom
