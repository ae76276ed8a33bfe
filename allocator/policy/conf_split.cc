#include "allocator/policy/conf_split.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ashlar::policy {
namespace {

// The key whose value is the name of a file, in which signs may be: all up to the next comma.
constexpr absl::string_view kFileKey = "plan";

bool IsSign(char c) { return c == ',' || c == ':' || c == '[' || c == ']'; }

bool IsBlank(char c, Grammar grammar) {
  return grammar == Grammar::kUpTo26 ? c == ' ' : absl::ascii_isspace(static_cast<unsigned char>(c));
}

// Takes tokens in turn.
class SettingReader {
 public:
  SettingReader(std::vector<std::string> tokens, Grammar grammar) : tokens_(std::move(tokens)), grammar_(grammar) {}

  bool IsAtEnd() const { return at_ >= tokens_.size(); }

  // False where the tokens from here on are no setting.
  bool Next(Setting& out) {
    out = {tokens_[at_++], ""};
    if (!TakeSign(":") || IsAtEnd()) return false;
    if (out.key == kFileKey) {
      while (!IsAtEnd() && tokens_[at_] != ",") out.value += tokens_[at_++];
    } else if (!TakeValue(out.value)) {
      return false;
    }
    return IsAtEnd() || TakeSign(",");
  }

 private:
  bool TakeSign(absl::string_view sign) {
    if (IsAtEnd()) return false;
    return tokens_[at_++] == sign || grammar_ == Grammar::kLater;
  }

  // A word, or a list up to its bracket.
  bool TakeValue(std::string& out) {
    out = tokens_[at_++];
    if (out != "[") return true;
    while (!IsAtEnd()) {
      out += tokens_[at_++];
      if (out.back() == ']') return true;
    }
    return false;
  }

  std::vector<std::string> tokens_;
  Grammar grammar_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> ConfTokens(absl::string_view text, Grammar grammar) {
  std::vector<std::string> out;
  bool is_in_word = false;
  for (const char c : text) {
    if (IsSign(c)) {
      out.emplace_back(1, c);
      is_in_word = false;
    } else if (!IsBlank(c, grammar)) {
      if (!is_in_word) out.emplace_back();
      out.back().push_back(c);
      is_in_word = true;
    }
  }
  return out;
}

Split SplitAsFarAsItGoes(absl::string_view conf, Grammar grammar) {
  Split out;
  SettingReader reader(ConfTokens(conf, grammar), grammar);
  while (!reader.IsAtEnd()) {
    Setting setting;
    if (!reader.Next(setting)) {
      out.status = absl::InvalidArgumentError(absl::StrCat("'", setting.key, "' in '", conf,
                                                           "' is no setting: write key:value, with commas between "
                                                           "settings"));
      break;
    }
    out.settings.push_back(std::move(setting));
  }
  return out;
}

absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf, Grammar grammar) {
  Split split = SplitAsFarAsItGoes(conf, grammar);
  if (!split.status.ok()) return split.status;
  return std::move(split.settings);
}

std::string JoinedConf(absl::string_view a, absl::string_view b) {
  a = absl::StripTrailingAsciiWhitespace(a);
  absl::ConsumeSuffix(&a, ",");
  const bool is_one_empty =
      absl::StripTrailingAsciiWhitespace(a).empty() || absl::StripTrailingAsciiWhitespace(b).empty();
  return absl::StrCat(a, is_one_empty ? "" : ",", b);
}

std::string WithoutKey(absl::string_view conf, absl::string_view key) {
  const absl::StatusOr<std::vector<Setting>> settings = SplitConf(conf);
  if (!settings.ok()) return std::string(conf);
  std::string out;
  bool is_found = false;
  for (const Setting& setting : *settings) {
    if (setting.key == key) {
      is_found = true;
    } else {
      absl::StrAppend(&out, out.empty() ? "" : ",", setting.key, ":", setting.value);
    }
  }
  return is_found ? out : std::string(conf);
}

}  // namespace ashlar::policy
