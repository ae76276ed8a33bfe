// What to do, of all that an answer knows: the line to paste, the command to start, the change of the program. At most
// three, the surest first.
//
//   for (const Suggestion& action : SuggestionsOf(explanation)) std::cout << action.what;
#ifndef ASHLAR_COMMANDS_EXPLAIN_SUGGESTIONS_H_
#define ASHLAR_COMMANDS_EXPLAIN_SUGGESTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "commands/explain/explanation.h"

namespace ashlar::answers {

enum class Proof : std::uint8_t {
  kRun,        // the program was run again with it, and ended
  kReplayed,   // the recorded requests were replayed with it
  kEstimated,  // by the bytes of the cause that it takes away
  kUnproven,   // a message alone does not tell
};
absl::string_view ProofName(Proof proof);  // "run", "replayed", "estimated", "not proven"

// As people read it, and once for all that may be tried: "not tried yet" of kUnproven, else its name.
absl::string_view ProofWords(Proof proof);

struct Suggestion {
  Proof proof = Proof::kUnproven;
  std::string what = {};                // a sentence; "else: ..." behind the first to try; empty where the lines say it
  std::vector<std::string> lines = {};  // for the shell or the program
  std::string gain = {};                // "peak 11.22 GiB -> 10.61 GiB, 1 -> 0 failed requests"; empty: not known
};

// ", 3 -> 0 retries"; empty where nothing changes.
std::string Changed(std::uint64_t before, std::uint64_t after, const char* what);

std::vector<Suggestion> SuggestionsOf(const Explanation& explanation);
// Whether the sentence of the advice says in other order what the actions say: it is not to be shown beside them.
bool SaysWhatActionsSay(const Explanation& explanation);

// The setting under which the program itself may be run again to see what a replay cannot know: that which gets past
// the failed request with the lowest peak. nullopt: none does, its replay fails again, or holes are not what it is
// about.
std::optional<std::string> SettingToTry(const Explanation& explanation);
// Whether a run had this setting: a program that puts its own into the environment had not.
bool RanUnder(const Explanation& explanation, absl::string_view conf);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_SUGGESTIONS_H_
