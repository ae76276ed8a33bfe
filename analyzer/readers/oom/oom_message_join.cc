// One failure may be told by several findings: this makes one message of them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/readers/oom/oom_message_families.h"

namespace ashlar::readers::oom {
namespace {

constexpr absl::string_view kStatistics = "tf-bfc-statistics";
// A failed step logs its warnings right before it raises; a warning farther away tells of another moment.
constexpr std::size_t kWarningReachBytes = 32768;

bool IsWarning(const OomMessage& message) { return message.family == "pt-warning"; }

bool Overlap(const Figure& a, const Figure& b) { return a.low_bytes <= b.high_bytes && b.low_bytes <= a.high_bytes; }

bool MapsPages(const OomMessage& message) {
  return !message.notes.empty() && message.notes.front().name == "maps_pages";
}

// Whether `message` is the failure that `warning` announces: a message of PyTorch, of the same device and size.
bool Announces(const OomMessage& warning, const OomMessage& message) {
  if (message.family.substr(0, 3) != "pt-" || IsWarning(message) || !message.tried) return false;
  if (message.device && message.device != warning.device) return false;
  if (message.byte_offset - warning.end_offset > kWarningReachBytes) return false;
  return MapsPages(warning) || Overlap(*warning.tried, *message.tried);
}

// The last of the warnings before a failure has the figures of its moment, to the byte.
void TakeFigures(const OomMessage& warning, OomMessage& message) {
  message.AddNote("announced", "warnings of the allocator before this message, each a call that the device refused");
  const auto narrow = [](const std::optional<Figure>& exact, std::optional<Figure>& printed) {
    if (!exact || !printed || !Overlap(*exact, *printed)) return;
    printed->low_bytes = exact->low_bytes;
    printed->high_bytes = exact->high_bytes;
  };
  if (!MapsPages(warning)) narrow(warning.tried, message.tried);
  narrow(warning.total, message.total);
  narrow(warning.free, message.free);
}

void JoinWarnings(std::vector<OomMessage>& messages) {
  std::vector<OomMessage> kept;
  for (OomMessage& message : messages) {
    std::size_t announced = kept.size();
    while (announced > 0 && IsWarning(kept[announced - 1]) && Announces(kept[announced - 1], message)) --announced;
    for (std::size_t i = announced; i < kept.size(); ++i) TakeFigures(kept[i], message);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(announced), kept.end());
    kept.push_back(std::move(message));
  }
  messages = std::move(kept);
}

// Statistics without a message before them are no failure: a program may print them at any time.
void JoinStatistics(std::vector<OomMessage>& messages) {
  std::vector<OomMessage> kept;
  for (OomMessage& message : messages) {
    if (message.family != kStatistics) {
      kept.push_back(std::move(message));
    } else if (!kept.empty() && kept.back().family == "tf-bfc" && !kept.back().limit) {
      kept.back().limit = message.limit;
      kept.back().reserved = message.reserved;
      kept.back().details.insert(kept.back().details.end(), message.details.begin(), message.details.end());
      kept.back().end_offset = message.end_offset;
    }
  }
  messages = std::move(kept);
}

}  // namespace

void JoinFindings(std::vector<OomMessage>& messages) {
  JoinWarnings(messages);
  JoinStatistics(messages);
}

}  // namespace ashlar::readers::oom
