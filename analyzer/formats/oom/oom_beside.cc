// The tables of nvidia-smi and rocm-smi, as people paste them beside a message: what is used of each device, and by
// whom.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
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

std::optional<FoundMessage> ParseNvidiaSmi(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("nvidia-smi", at);
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

void AddDevice(int device, absl::string_view what, const Figure& figure, OomMessage& message) {
  message.details.push_back({absl::StrCat("device_", what, ".", device), figure});
}

// rocm-smi --showmeminfo vram: "GPU[0] : VRAM Total Memory (B): 25753026560", and a line of what is used.
std::optional<FoundMessage> ParseRocmSmi(const SqueezedText& text, std::size_t at) {
  FoundMessage finding = Begin("rocm-smi", at);
  finding.kind = FindingKind::kBeside;
  constexpr std::size_t kMostLineBytes = 120;
  Cursor cursor(text, at);
  for (int devices = 0; devices < kMostDevices; ++devices) {
    Cursor look = cursor;
    if (!look.SkipPast("GPU[", devices == 0 ? 0 : kMostLineBytes)) break;
    const std::optional<std::int64_t> device = look.TakeInteger();
    if (!device || *device >= kMostDevices || !look.Take("]:VRAMTotalMemory(B):")) break;
    // What follows is the next line's "GPU", and no unit.
    const std::optional<Figure> total = look.TakeNumber(1);
    if (!total || !look.SkipPast("VRAMTotalUsedMemory(B):", kMostLineBytes)) break;
    const std::optional<Figure> used = look.TakeNumber(1);
    if (!used) break;
    AddDevice(static_cast<int>(*device), "used", *used, finding.message);
    AddDevice(static_cast<int>(*device), "total", *total, finding.message);
    cursor = look;
    finding.end = cursor.at();
  }
  return finding.message.details.empty() ? std::nullopt : std::optional(std::move(finding));
}

// A column of a table with commas between, by the words of its head.
struct HeadColumn {
  absl::string_view words;
  absl::string_view what;  // it tells; "index": of the device
  std::uint64_t unit_bytes;
};
constexpr HeadColumn kColumns[] = {{"index", "index", 0},
                                   {"device", "index", 0},
                                   {"memory.total [MiB]", "total", kMiB},
                                   {"memory.used [MiB]", "used", kMiB},
                                   {"memory.free [MiB]", "free", kMiB},
                                   {"VRAM Total Memory (B)", "total", 1},
                                   {"VRAM Total Used Memory (B)", "used", 1}};

// Of a line with commas between its cells, without what a logger put before it.
std::vector<absl::string_view> CellsOf(absl::string_view line) {
  std::vector<absl::string_view> out;
  for (const absl::string_view cell : absl::StrSplit(line.substr(LinePrefixLength(line)), ',')) {
    out.push_back(absl::StripAsciiWhitespace(cell));
  }
  return out;
}

// "40960 MiB", and "40960" of `nounits`.
std::optional<Figure> FigureOfCell(absl::string_view cell, std::uint64_t unit_bytes) {
  std::uint64_t number = 0;
  const absl::string_view digits = absl::StripAsciiWhitespace(absl::StripSuffix(cell, "MiB"));
  if (!absl::SimpleAtoi(digits, &number) || number >= kMostHeldBytes / unit_bytes) return std::nullopt;
  const std::uint64_t bytes = number * unit_bytes;
  const std::uint64_t half = unit_bytes / 2;
  return Figure{bytes - std::min(bytes, half), bytes + half,
                absl::StrCat(digits, unit_bytes == kMiB ? " MiB" : " bytes")};
}

// A row below the head; false where it is none.
bool TakeCells(const std::vector<absl::string_view>& head, const std::vector<absl::string_view>& cells, int row,
               OomMessage& message) {
  if (cells.size() != head.size()) return false;
  int device = row;
  std::vector<std::pair<absl::string_view, Figure>> figures;
  for (std::size_t i = 0; i < head.size(); ++i) {
    const auto* const column = std::find_if(std::begin(kColumns), std::end(kColumns),
                                            [&](const HeadColumn& of) { return of.words == head[i]; });
    if (column == std::end(kColumns)) continue;
    if (column->what == "index") {
      if (!absl::SimpleAtoi(absl::StripPrefix(cells[i], "card"), &device) || device < 0) return false;
    } else if (const std::optional<Figure> figure = FigureOfCell(cells[i], column->unit_bytes); figure.has_value()) {
      figures.emplace_back(column->what, *figure);
    } else {
      return false;
    }
  }
  for (const auto& [what, figure] : figures) AddDevice(device, what, figure, message);
  return true;
}

// nvidia-smi --query-gpu=... --format=csv, and rocm-smi --csv: a head, and a line for each device.
template <const absl::string_view& kFamily>
std::optional<FoundMessage> ParseCsv(const SqueezedText& text, std::size_t at) {
  const absl::string_view raw = text.raw();
  const std::size_t newline = raw.substr(0, text.RawAt(at)).rfind('\n');
  std::size_t line_at = newline == absl::string_view::npos ? 0 : newline + 1;
  const auto take_line = [&] {
    const std::size_t end = std::min(raw.find('\n', line_at), raw.size());
    const absl::string_view line = absl::StripSuffix(raw.substr(line_at, end - line_at), "\r");
    line_at = std::min(end + 1, raw.size());
    return line;
  };
  FoundMessage finding = Begin(kFamily, at);
  finding.kind = FindingKind::kBeside;
  const std::vector<absl::string_view> head = CellsOf(take_line());
  for (int row = 0; row < kMostDevices && TakeCells(head, CellsOf(take_line()), row, finding.message); ++row) {
    finding.end = text.AtRaw(line_at);
  }
  return finding.message.details.empty() ? std::nullopt : std::optional(std::move(finding));
}

constexpr absl::string_view kNvidiaSmi = "nvidia-smi", kRocmSmi = "rocm-smi";

}  // namespace

const std::vector<Anchor>& BesideAnchors() {
  static const auto& anchors = *new std::vector<Anchor>{{"|NVIDIA-SMI", &ParseNvidiaSmi},
                                                        {"NVIDIA-SMI", &ParseNvidiaSmi},
                                                        {"memory.total[MiB]", &ParseCsv<kNvidiaSmi>},
                                                        {"memory.used[MiB]", &ParseCsv<kNvidiaSmi>},
                                                        {"memory.free[MiB]", &ParseCsv<kNvidiaSmi>},
                                                        {"VRAMTotalMemory(B),", &ParseCsv<kRocmSmi>},
                                                        {"GPU[", &ParseRocmSmi}};
  return anchors;
}

}  // namespace ashlar::formats::oom
