// The variables of a program that hold memory, put together from the rows of who holds it: a list, a dictionary, the
// weights of a model. A row is one name ("models[].net.*.weight", "models[].net.*.bias"), a variable what a person
// thinks of ("models[]"): its name up to its first element, in one function of one file.
//
//   for (const Variable& variable : VariablesOf(held)) Print(HolderPlace(variable.Largest(held)), variable.bytes);
//
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_HOLDERS_VARIABLES_H_
#define ASHLAR_ANALYZER_ANALYSES_HOLDERS_VARIABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/holders.h"
#include "analyzer/analyses/holders/held_by_name.h"

namespace ashlar::analyses {

// What a holder is to its program.
enum class OwnerRole : std::uint8_t {
  kWeights,    // a parameter or a buffer
  kGradient,   // of a parameter, or of a tensor that keeps its own
  kOptimizer,  // state of an optimizer, and what else it alone holds
  kGraph,      // saved for a backward pass
  kVariable,   // a variable, or what is reached from one
  kHook,       // reached by a hook alone
  kError,      // by the frames that an error keeps
  kCycle,      // by a reference cycle alone
  kUnseen,     // from within C or C++
  kAtWork,     // a temporary of the calls under way
  kLibrary,    // workspaces, buckets, pools of graphs
  kNobody,     // not found
};
OwnerRole RoleOf(const trace::Holder& holder);

// Whether it is of a model that a variable has, with its gradients and its optimizer's state, and not of one of many in
// a list: it is made once, part by part, and grows with no step.
bool IsOfOneModel(const trace::Holder& holder);

// "`losses[]` in train.py:31 train"; the function is left out where it is the module itself.
std::string HolderPlace(const trace::Holder& holder);

struct Variable {
  std::string name = {};                 // "models[]"
  std::vector<std::size_t> rows = {};    // in HeldByName::rows, most bytes first
  std::vector<std::size_t> blocks = {};  // in Timeline::blocks(), in their order
  std::uint64_t bytes = 0;               // requested
  OwnerRole role = OwnerRole::kNobody;   // of most of its bytes
  std::uint64_t bytes_of_role = 0;

  // The largest row, under the variable's own name.
  trace::Holder Holder(const HeldByName& held) const;
  // Of its bytes, those of rows that are such.
  template <typename Predicate>
  std::uint64_t BytesOf(const HeldByName& held, Predicate is_such) const {
    std::uint64_t out = 0;
    for (const std::size_t row : rows) out += is_such(held.rows[row].holder) ? held.rows[row].bytes : 0;
    return out;
  }
  // Whether mostly the call of a module that is under way has it: what only a frame within one or of PyTorch itself
  // has. Its layers are no iterations, and it is not from the setup. What a module keeps may be reached from such a
  // frame too.
  bool IsOfRunningPass(const HeldByName& held) const;
};

// Most bytes first. What has no variable (kAtWork, kLibrary, kNobody) is left out.
std::vector<Variable> VariablesOf(const HeldByName& held);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_HOLDERS_VARIABLES_H_
