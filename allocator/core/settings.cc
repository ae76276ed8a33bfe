#include "allocator/core/settings.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/policy/conf_split.h"

namespace ashlar::core {
namespace {

constexpr const char* kOurs = "ASHLAR_CONF";
constexpr const char* kUseTheirs = "ASHLAR_USE_PYTORCH_CONF";
constexpr const char* kTheirs[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};  // the first that is set, alone

struct SettingText {
  std::string source;
  std::string conf;
};

absl::StatusOr<policy::Options> Parse(const SettingText& text, policy::Compat compat, policy::Keys keys) {
  absl::StatusOr<policy::Options> options = policy::ParseConf(text.conf, compat, keys);
  if (options.ok()) return options;
  return absl::InvalidArgumentError(absl::StrCat(text.source, ": ", options.status().message()));
}

absl::StatusOr<bool> UsesTheirs(const Environment& environment) {
  const std::string value = environment(kUseTheirs).value_or("0");
  if (value == "1" || value == "True") return true;
  if (value == "0" || value == "False" || value.empty()) return false;
  return absl::InvalidArgumentError(absl::StrCat(kUseTheirs, ": '", value, "' is not allowed: use 1 or 0"));
}

std::optional<SettingText> TheirText(const Environment& environment) {
  for (const char* name : kTheirs) {
    if (const std::optional<std::string> conf = environment(name); conf.has_value()) return SettingText{name, *conf};
  }
  return std::nullopt;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

absl::StatusOr<policy::Options> OptionsFromEnvironment(const Environment& environment) {
  const SettingText ours{kOurs, environment(kOurs).value_or("")};
  absl::StatusOr<policy::Options> options = Parse(ours, policy::Options{}.compat, policy::Keys::kAshlar);
  if (!options.ok()) return options;
  const absl::StatusOr<bool> uses_theirs = UsesTheirs(environment);
  if (!uses_theirs.ok()) return uses_theirs.status();
  const std::optional<SettingText> theirs = *uses_theirs ? TheirText(environment) : std::nullopt;
  if (!theirs.has_value()) return options;
  const absl::StatusOr<policy::Options> alone = Parse(*theirs, options->compat, policy::Keys::kTorch);
  if (!alone.ok()) return alone;
  // A later key wins. Each is right by itself; what may still be wrong is one key beside another.
  const SettingText both{absl::StrCat(theirs->source, " with ", kOurs), policy::JoinedConf(theirs->conf, ours.conf)};
  return Parse(both, options->compat, policy::Keys::kAshlar);
}

}  // namespace ashlar::core
