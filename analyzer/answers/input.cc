#include "analyzer/answers/input.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::answers {
namespace {

bool Takes(const InputRule& rule, readers::Holds holds) {
  return holds == readers::Holds::kSnapshot || holds == readers::Holds::kRequests ||
         (holds == readers::Holds::kProblem && rule.problems);
}

constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::size_t kMostUtf16Bytes = 64 * kMiB;  // which are held as UTF-8

constexpr absl::string_view kLongUtf16 =
    "this is a text of more than 64 MiB in UTF-16: make it UTF-8 first (iconv -f UTF-16 -t UTF-8)";

constexpr absl::string_view kNoMessage =
    "this text speaks of memory that ran out, but holds no message of it that is known here; give the lines around "
    "\"out of memory\" as the program printed them, or a snapshot: "
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")";

absl::StatusOr<Input> LoadUnmarked(absl::string_view bytes, const InputRule& rule) {
  const readers::Format& format = readers::FormatOf(bytes);
  if (rule.fits) {
    if (absl::Status status = rule.fits(format.kind); !status.ok()) return status;
  }
  if (Takes(rule, format.holds)) {
    readers::ReadContent content = format.read(bytes, rule.limits);
    if (!content.ok()) return content.status();
    return Input(*std::move(content));
  }
  if (rule.messages && format.kind != readers::InputKind::kBinary) {
    std::vector<readers::OomMessage> found = readers::FindOomMessages(bytes);
    if (!found.empty()) return Input(std::make_unique<const readers::Content>(std::move(found)));
  }
  if (rule.messages && format.holds == readers::Holds::kMessages) return absl::InvalidArgumentError(kNoMessage);
  return absl::InvalidArgumentError(absl::StrCat("this is ", format.name, ", not ", rule.names));
}

}  // namespace

InputRule ExplainedInputs() {
  return {.messages = true,
          .names =
              "a PyTorch memory snapshot, a request trace or a text with an out-of-memory message; record a snapshot "
              "with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"};
}

absl::StatusOr<Input> LoadInput(absl::string_view bytes, const InputRule& rule) {
  if (absl::ConsumePrefix(&bytes, kUtf8Mark)) return LoadUnmarked(bytes, rule);
  if (bytes.size() > kMostUtf16Bytes && readers::HasByteOrderMark(bytes)) return absl::InvalidArgumentError(kLongUtf16);
  const std::optional<std::string> text = readers::WithoutByteOrderMark(bytes);
  return LoadUnmarked(text.has_value() ? *text : bytes, rule);
}

}  // namespace ashlar::answers
