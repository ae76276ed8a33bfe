#include "analyzer/answers/input.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::answers {
namespace {

bool Takes(const InputRule& rule, readers::Holds holds) {
  return holds == readers::Holds::kSnapshot || holds == readers::Holds::kRequests ||
         (holds == readers::Holds::kProblem && rule.problems);
}

}  // namespace

absl::StatusOr<Input> LoadInput(absl::string_view bytes, const InputRule& rule) {
  const readers::Format& format = readers::FormatOf(bytes);
  if (rule.fits) {
    if (absl::Status status = rule.fits(format.kind); !status.ok()) return status;
  }
  if (Takes(rule, format.holds)) {
    readers::ReadContent content = format.read(bytes);
    if (!content.ok()) return content.status();
    return Input(*std::move(content));
  }
  if (rule.messages) {
    std::vector<readers::OomMessage> found = readers::FindOomMessages(bytes);
    if (!found.empty()) return Input(std::make_unique<const readers::Content>(std::move(found)));
  }
  return absl::InvalidArgumentError(absl::StrCat("this is ", format.name, ", not ", rule.names));
}

}  // namespace ashlar::answers
