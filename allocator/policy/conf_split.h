// The settings of a text of PYTORCH_CUDA_ALLOC_CONF's grammar, as they stand: conf_parser.cc reads them.
//
//   SplitConf("max_split_size_mb:64,roundup_power2_divisions:[1:2,>:4]")  ->  {max_split_size_mb, 64},
//                                                                             {roundup_power2_divisions, [1:2,>:4]}
#ifndef ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
#define ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::policy {

struct Setting {
  std::string key;
  std::string value;
};

// How PyTorch's releases cut a text. Each cuts it into words and the signs , : [ ] and takes them in turn.
enum class Grammar : std::uint8_t {
  kUpTo26,  // only spaces are no part of a word; the signs between words are looked at
  kLater,   // no blank is; any sign may stand where a colon or a comma should
};

// The words and signs.
std::vector<std::string> ConfTokens(absl::string_view text, Grammar grammar);

// The settings up to the first that is none, and what is wrong with that.
struct Split {
  std::vector<Setting> settings = {};
  absl::Status status = {};
};
Split SplitAsFarAsItGoes(absl::string_view conf, Grammar grammar);

absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf, Grammar grammar = Grammar::kLater);

// `b` behind `a`, of which either may be nothing: a comma at the end of `a` is the one between them.
std::string JoinedConf(absl::string_view a, absl::string_view b);

// The text without the settings of this key; as given where there are none, or where it is no text of settings.
std::string WithoutKey(absl::string_view conf, absl::string_view key);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CONF_SPLIT_H_
