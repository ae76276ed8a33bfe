// The messages of this project's own allocator (allocator/core/oom_report.h), by itself or in PyTorch's error.
#include "absl/strings/str_cat.h"
#include "analyzer/readers/oom/oom_message_families.h"

namespace ashlar::readers::oom {
namespace {

// "live 13.09 GiB, rounding 72.00 MiB": what the program holds, in blocks.
void TakeAllocated(Cursor& cursor, OomMessage& message) {
  Cursor look = cursor;
  std::optional<Figure> live, rounding;
  if (!TakeFigureAfter(look, "partssumexactly):live", 400, message, live)) return;
  if (!TakeFigureAfter(look, ",rounding", 0, message, rounding) || !live || !rounding) return;
  message.allocated = Figure{live->low_bytes + rounding->low_bytes, live->high_bytes + rounding->high_bytes,
                             absl::StrCat(live->printed, " + ", rounding->printed)};
  cursor = look;
}

// "out of memory: 220.00 MiB requested (a segment of 220.00 MiB), device free 200.00 MiB of 15.78 GiB, reserved 14.44
// GiB", with the lines behind it where they are there. `tried` is the segment, as in PyTorch's messages.
std::optional<Finding> ParseFigures(Cursor cursor, Finding finding) {
  OomMessage& message = finding.message;
  std::optional<Figure> requested;
  if (!TakeFigureAfter(cursor, "outofmemory:", 0, message, requested)) return std::nullopt;
  if (!cursor.Take("requested")) return std::nullopt;
  if (requested) message.details.push_back({"requested", *requested});
  const bool has_segment = TakeFigureAfter(cursor, "(asegmentof", 0, message, message.tried);
  cursor.Take(",rejectedbythrow_on_cudamalloc_oom");
  const bool is_whole = has_segment && TakeFigureAfter(cursor, "),devicefree", 0, message, message.free) &&
                        TakeFigureAfter(cursor, "of", 0, message, message.total) &&
                        TakeFigureAfter(cursor, ",reserved", 0, message, message.reserved);
  if (!message.tried) message.tried = requested;
  message.truncated = !is_whole;
  if (is_whole) TakeAllocated(cursor, message);
  finding.end = cursor.at();
  return finding;
}

std::optional<Finding> ParseAlone(const SqueezedText& text, std::size_t at) {
  return ParseFigures(Cursor(text, at), Begin("ashlar", at));
}

// "CUDA out of memory. GPU 0: out of memory: 220.00 MiB requested ...": the plug-in's, as torch.OutOfMemoryError.
std::optional<Finding> ParseInTorch(const SqueezedText& text, std::size_t at) {
  Finding finding = Begin("ashlar", at);
  Cursor cursor(text, at);
  cursor.Take("CUDAoutofmemory.GPU");
  const std::optional<std::int64_t> device = cursor.TakeInteger();
  if (!device || *device > 1'000'000 || !cursor.Take(":")) return std::nullopt;
  finding.message.device = static_cast<int>(*device);
  return ParseFigures(cursor, finding);
}

}  // namespace

const std::vector<Anchor>& OurAnchors() {
  static const auto& anchors =
      *new std::vector<Anchor>{{"CUDAoutofmemory.GPU", &ParseInTorch}, {"outofmemory:", &ParseAlone}};
  return anchors;
}

}  // namespace ashlar::readers::oom
