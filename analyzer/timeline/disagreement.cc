#include "analyzer/timeline/disagreement.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace ashlar::timeline {

std::string FormatAddress(std::uint64_t address) { return absl::StrCat("0x", absl::Hex(address)); }

absl::Status Disagreement(int device, std::int64_t event_index, const trace::Event& event, absl::string_view what) {
  const std::string byte = event.file_byte == trace::kNoByte ? "" : absl::StrCat(" at byte ", event.file_byte);
  return absl::FailedPreconditionError(absl::StrCat("device ", device, ", event ", event_index, byte, " (",
                                                    trace::ActionName(event.action), " of ", event.size_bytes, " B at ",
                                                    FormatAddress(event.address), "): ", what));
}

}  // namespace ashlar::timeline
