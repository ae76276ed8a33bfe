#include "analyzer/answers/input.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::answers {
namespace {

bool Takes(const InputRule& rule, readers::Holds holds) {
  return holds == readers::Holds::kSnapshot || holds == readers::Holds::kRequests ||
         (holds == readers::Holds::kProblem && rule.problems);
}

constexpr absl::string_view kNoMessage =
    "this text speaks of memory that ran out, but holds no message of it that is known here; give the lines around "
    "\"out of memory\" as the program printed them, or a snapshot: "
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")";

}  // namespace

absl::StatusOr<Input> LoadInput(absl::string_view bytes, const InputRule& rule) {
  if (const std::optional<std::string> text = readers::WithoutByteOrderMark(bytes)) return LoadInput(*text, rule);
  const readers::Format& format = readers::FormatOf(bytes);
  if (rule.fits) {
    if (absl::Status status = rule.fits(format.kind); !status.ok()) return status;
  }
  if (Takes(rule, format.holds)) {
    readers::ReadContent content = format.read(bytes, rule.limits);
    if (!content.ok()) return content.status();
    return Input(*std::move(content));
  }
  if (rule.messages) {
    std::vector<readers::OomMessage> found = readers::FindOomMessages(bytes);
    if (!found.empty()) return Input(std::make_unique<const readers::Content>(std::move(found)));
  }
  if (rule.messages && format.holds == readers::Holds::kMessages) return absl::InvalidArgumentError(kNoMessage);
  return absl::InvalidArgumentError(absl::StrCat("this is ", format.name, ", not ", rule.names));
}

}  // namespace ashlar::answers
