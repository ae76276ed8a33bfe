// Several sets of the same weights: told by their owners, by their sizes, by deepcopy, or as casts that autocast keeps.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/causes/program_memory.h"

namespace ashlar::analyses {
namespace {

using Indices = std::vector<std::size_t>;

// Of what is allocated: below it a copy is what a method such as a moving average takes, and nothing to mend.
constexpr double kLeastCopiesShare = 0.15;
constexpr double kLeastSureShare = 0.1;  // where an owner or copy.deepcopy leaves no doubt that it is a copy
// Of the bytes of a set, what must have its twin.
constexpr double kLeastAlike = 0.9;
constexpr std::size_t kLeastParameters = 4;
constexpr double kLeastWithParameter = 0.6;  // of the bytes that a backward pass leaves

bool IsDeepCopyFrame(const trace::Frame& frame) {
  return frame.function == "__deepcopy__" || frame.function == "deepcopy" || frame.function == "_deepcopy_dict";
}

// An optimizer that PyTorch does not have makes its state in a `step` of its own, or in a file that is named so.
bool IsOptimizerFrame(const trace::Frame& frame) {
  const std::string file = absl::AsciiStrToLower(frame.file);
  return frame.function == "step" || absl::StrContains(file.substr(file.find_last_of("/\\") + 1), "optim");
}

bool IsOptimizerFile(absl::string_view file) { return absl::StrContains(file, "torch/optim/"); }

std::uint64_t Bytes(const SizeCounts& counts) {
  std::uint64_t out = 0;
  for (const auto& [bytes, count] : counts) out += bytes * count;
  return out;
}

std::size_t Count(const SizeCounts& counts) {
  std::size_t out = 0;
  for (const auto& [bytes, count] : counts) out += count;
  return out;
}

// A set of weights in another precision: times `up` through `down`.
SizeCounts Scaled(const SizeCounts& counts, std::uint64_t up, std::uint64_t down) {
  SizeCounts out;
  for (const auto& [bytes, count] : counts) out[bytes * up / down] += count;
  return out;
}

// Takes from `pool` whole sets of the sizes in `set`, as long as nearly all of one is there; how many.
std::size_t TakeSets(SizeCounts& pool, const SizeCounts& set) {
  std::size_t sets = 0;
  while (Bytes(set) > 0) {
    std::uint64_t alike = 0;
    for (const auto& [bytes, count] : set) {
      const auto found = pool.find(bytes);
      if (found != pool.end()) alike += bytes * std::min(count, found->second);
    }
    if (static_cast<double>(alike) < kLeastAlike * static_cast<double>(Bytes(set))) return sets;
    for (const auto& [bytes, count] : set) {
      const auto found = pool.find(bytes);
      if (found != pool.end()) found->second -= std::min(count, found->second);
    }
    ++sets;
  }
  return sets;
}

// Of what a backward pass leaves, what has a block of its size that lasts; the rest it frees at its very end.
SizeCounts WithParameter(const SizeCounts& left, const SizeCounts& lasting) {
  SizeCounts out;
  for (const auto& [bytes, count] : left) {
    const auto parameters = lasting.find(bytes);
    if (parameters != lasting.end()) out[bytes] = std::min(count, parameters->second);
  }
  if (static_cast<double>(Bytes(out)) < kLeastWithParameter * static_cast<double>(Bytes(left))) return {};
  return out;
}

struct Copies {
  Indices blocks = {};
  std::size_t sets = 0;
  std::string proof = {};
  double least_share = kLeastCopiesShare;
};

// Of each size, the last `counts` blocks made: the copy comes after what it copies.
Indices LastOf(const ProgramMemory& memory, const Indices& indices, SizeCounts counts) {
  Indices out;
  for (auto index = indices.rbegin(); index != indices.rend(); ++index) {
    const auto left = counts.find(memory.RequestedBytes(*index));
    if (left == counts.end() || left->second == 0) continue;
    --left->second;
    out.push_back(*index);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

SizeCounts Times(const SizeCounts& set, std::size_t times) {
  SizeCounts out;
  for (const auto& [bytes, count] : set) out[bytes] = count * times;
  return out;
}

// What is trained leaves gradients of its sizes; one more set of them, or one of half or twice the sizes, is a copy.
Copies CopiesOfTrained(const ProgramMemory& memory, const Indices& lasting) {
  Copies out;
  SizeCounts pool = memory.SizesOf(lasting);
  const SizeCounts trained = WithParameter(memory.trained(), pool);
  if (Count(trained) < kLeastParameters) return out;
  const std::size_t same = TakeSets(pool, trained);
  if (same == 0) return out;
  SizeCounts counts = Times(trained, same - 1);
  out.sets = same - 1;
  for (const bool is_twice : {true, false}) {
    const SizeCounts other = is_twice ? Scaled(trained, 2, 1) : Scaled(trained, 1, 2);
    const std::size_t sets = TakeSets(pool, other);
    out.sets += sets;
    for (const auto& [bytes, count] : other) counts[bytes] += count * sets;
  }
  if (out.sets == 0) return out;
  out.blocks = LastOf(memory, lasting, std::move(counts));
  out.proof = absl::StrCat("the backward pass leaves ", FormatCount(Count(trained)), " gradients of together ",
                           FormatBytes(Bytes(trained)), ", and ", out.sets,
                           out.sets == 1 ? " more set of blocks has" : " more sets of blocks have",
                           " their sizes, or half or twice them, and no gradients of its own");
  return out;
}

// Without a backward pass: copies that say so, by copy.deepcopy, of what else is alive.
Copies CopiesByDeepCopy(const CauseContext& context, const ProgramMemory& memory, const Indices& lasting) {
  Indices copied;
  Indices others;
  for (const std::size_t index : lasting) {
    (IsMadeUnder(context, index, IsDeepCopyFrame) ? copied : others).push_back(index);
  }
  Copies out;
  if (copied.size() < kLeastParameters) return out;
  const SizeCounts there = memory.SizesOf(others);
  std::uint64_t alike = 0;
  for (const std::size_t index : copied) {
    if (there.count(memory.RequestedBytes(index)) > 0) alike += memory.RequestedBytes(index);
  }
  if (static_cast<double>(alike) < kLeastAlike * static_cast<double>(Bytes(memory.SizesOf(copied)))) return out;
  out.sets = 1;
  out.blocks = copied;
  if (ShortageAt(context).has_value()) out.least_share = kLeastSureShare;
  out.proof =
      absl::StrCat("copy.deepcopy made ", FormatCount(copied.size()), " blocks, of sizes that are alive beside them");
  return out;
}

// Blocks of weights, and what may be a copy of them: no state of an optimizer, and nothing that piles up in another
// way. What is older than the recording and has no stack may be either.
Indices LastingSets(const CauseContext& context, const ProgramMemory& memory) {
  std::set<std::size_t> piled;
  for (const LeakGrowth& leak : context.history->leaks) {
    if (leak.shape != LeakShape::kOther) piled.insert(leak.blocks.begin(), leak.blocks.end());
  }
  Indices out;
  for (const std::size_t index : memory.lasting()) {
    const bool has_stack = context.history->timeline->blocks()[index].stack != trace::kNoStack;
    if (has_stack && piled.count(index) == 0 && !IsMadeUnder(context, index, IsOptimizerFrame)) out.push_back(index);
  }
  return out;
}

// Copies of weights by their owners: modules of equal paths and sizes of which no optimizer has one, or one was last
// trained before the other was made; dictionaries and lists of tensors that have the sizes of all weights.
class OwnedCopies {
 public:
  OwnedCopies(const CauseContext& context, const HeldByName& held)
      : context_(context), held_(held), blocks_(context.history->timeline->blocks()) {
    FindTwins();
    FindSets();
  }

  // Models before the state of their optimizers, most bytes first.
  std::vector<Variable> Take() {
    std::stable_sort(found_.begin(), found_.end(), [](const Variable& a, const Variable& b) {
      const auto key = [](const Variable& one) { return std::pair(one.role == OwnerRole::kOptimizer, ~one.bytes); };
      return key(a) < key(b);
    });
    return std::move(found_);
  }
  bool has_gradients() const { return has_gradients_; }

 private:
  struct Module {
    std::string path = {};
    std::string file = {};
    std::string function = {};  // of the variable

    bool operator==(const Module&) const = default;
    bool operator<(const Module& other) const {
      return std::tie(path, file, function) < std::tie(other.path, other.file, other.function);
    }
    bool Has(const trace::Holder& holder) const {
      return holder.file == file && holder.function == function && IsUnder(holder.name, path);
    }
    bool Overlaps(const Module& other) const {
      if (other.file != file || other.function != function) return false;
      return other.path == path || IsUnder(other.path, path) || IsUnder(path, other.path);
    }
  };
  struct Twin {
    std::uint64_t bytes = 0;  // of rows that both have
    bool is_copy_optimized = false;
    bool is_original_optimized = false;
  };

  static bool IsUnder(absl::string_view name, absl::string_view prefix) {
    return absl::StartsWith(name, prefix) && name.size() > prefix.size() && name[prefix.size()] == '.';
  }

  // "model.net.weight" -> "model.net", "model".
  static std::vector<std::string> PrefixesOf(const std::string& name) {
    std::vector<std::string> out;
    for (std::size_t at = name.rfind('.'); at != std::string::npos && at > 0; at = name.rfind('.', at - 1)) {
      out.push_back(name.substr(0, at));
    }
    return out;
  }

  // A name of elements ("shadows[]") stands for several copies.
  static bool AreAlike(const Module& copy, const HeldRow& of_copy, const HeldRow& of_original) {
    if (of_copy.blocks == of_original.blocks) return of_copy.bytes == of_original.bytes;
    return absl::StrContains(copy.path, "[]") && of_copy.blocks % of_original.blocks == 0 &&
           of_copy.bytes == of_copy.blocks / of_original.blocks * of_original.bytes;
  }

  void FindTwins() {
    using Place = std::pair<Module, std::size_t>;                                 // and a row under it
    std::map<std::pair<std::string, std::uint64_t>, std::vector<Place>> by_rest;  // and bytes of a block
    for (std::size_t i = 0; i < held_.rows.size(); ++i) {
      const HeldRow& row = held_.rows[i];
      if (row.holder.kind != "parameter") continue;
      for (const std::string& prefix : PrefixesOf(row.holder.name)) {
        by_rest[{row.holder.name.substr(prefix.size()), row.bytes / row.blocks}].emplace_back(
            Module{prefix, row.holder.file, row.holder.function}, i);
      }
    }
    std::map<std::pair<Module, Module>, Twin> twins;  // (the copy, what it is of)
    for (const auto& [rest, places] : by_rest) {
      for (const auto& [copy, row] : places) {
        for (const auto& [original, other] : places) {
          if (copy == original || !AreAlike(copy, held_.rows[row], held_.rows[other])) continue;
          Twin& twin = twins[{copy, original}];
          twin.bytes += held_.rows[row].bytes;
          twin.is_copy_optimized = twin.is_copy_optimized || held_.rows[row].holder.Is("optimized");
          twin.is_original_optimized = twin.is_original_optimized || held_.rows[other].holder.Is("optimized");
        }
      }
    }
    struct Copy {
      std::uint64_t bytes = 0;
      Module module;
      timeline::EventIndex made_anew = 0;  // when what took its place was made; 0: nothing did
    };
    std::vector<Copy> copies;
    for (const auto& [modules, twin] : twins) {
      const auto& [copy, original] = modules;
      if (!IsShareOf(twin.bytes, kLeastAlike, BytesOfParameters(copy))) continue;
      if (twin.is_copy_optimized) {
        const timeline::EventIndex anew = FirstMade(original);
        if (twin.is_original_optimized && IsLastTrainedBefore(copy, anew)) copies.push_back({twin.bytes, copy, anew});
      } else if (twin.is_original_optimized || IsDeepCopy(copy)) {
        copies.push_back({twin.bytes, copy, 0});
      }
    }
    std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) {
      return std::tuple(b.bytes, a.module.path.size(), a.module, b.made_anew) <
             std::tuple(a.bytes, b.module.path.size(), b.module, a.made_anew);
    });
    std::vector<Module> taken;
    for (const Copy& copy : copies) {
      const bool is_taken =
          std::any_of(taken.begin(), taken.end(), [&copy](const Module& other) { return other.Overlaps(copy.module); });
      if (is_taken) continue;
      taken.push_back(copy.module);
      TakeUnder(copy.module, copy.made_anew);
    }
  }

  std::uint64_t BytesOfParameters(const Module& module) const {
    std::uint64_t out = 0;
    for (const HeldRow& row : held_.rows) {
      if (row.holder.kind == "parameter" && module.Has(row.holder)) out += row.bytes;
    }
    return out;
  }

  timeline::EventIndex FirstMade(const Module& module) const {
    timeline::EventIndex out = timeline::kNever;
    for (const HeldRow& row : held_.rows) {
      if (row.holder.kind != "parameter" || !module.Has(row.holder)) continue;
      out = std::min<timeline::EventIndex>(out, blocks_[row.indices.front()].alloc_event);
    }
    return out;
  }

  bool IsOlder(const HeldRow& row, timeline::EventIndex event) const {
    return blocks_[row.indices.back()].alloc_event < event;
  }

  // Its gradients were made before that event, and none since: another model took its place.
  bool IsLastTrainedBefore(const Module& module, timeline::EventIndex event) const {
    bool has_gradients = false;
    for (const HeldRow& row : held_.rows) {
      if (row.holder.kind != "gradient" || !module.Has(row.holder)) continue;
      if (!IsOlder(row, event)) return false;
      has_gradients = true;
    }
    return has_gradients;
  }

  bool IsDeepCopy(const Module& module) const {
    for (const HeldRow& row : held_.rows) {
      if (row.holder.kind != "parameter" || !module.Has(row.holder)) continue;
      if (!IsMadeUnder(context_, row.indices.front(), IsDeepCopyFrame)) return false;
    }
    return true;
  }

  // With the state of optimizers that is as old, where another model took its place.
  void TakeUnder(const Module& module, timeline::EventIndex made_anew) {
    Variable variable;
    variable.name = module.path;
    Variable state;
    state.role = OwnerRole::kOptimizer;
    for (std::size_t i = 0; i < held_.rows.size(); ++i) {
      const HeldRow& row = held_.rows[i];
      const OwnerRole role = RoleOf(row.holder);
      if (role == OwnerRole::kOptimizer && IsOlder(row, made_anew)) {
        if (state.rows.empty()) state.name = row.holder.name;
        TakeRow(i, state);
      }
      if ((role != OwnerRole::kWeights && role != OwnerRole::kGradient) || !module.Has(row.holder)) continue;
      has_gradients_ = has_gradients_ || role == OwnerRole::kGradient;
      TakeRow(i, variable);
    }
    Add(std::move(variable));
    if (!state.rows.empty()) Add(std::move(state));
  }

  void TakeRow(std::size_t row, Variable& variable) const {
    const std::vector<std::size_t>& indices = held_.rows[row].indices;
    variable.rows.push_back(row);
    variable.blocks.insert(variable.blocks.end(), indices.begin(), indices.end());
    variable.bytes += held_.rows[row].bytes;
  }

  void Add(Variable variable) {
    std::sort(variable.blocks.begin(), variable.blocks.end());
    const bool is_new = std::none_of(variable.blocks.begin(), variable.blocks.end(),
                                     [&](std::size_t index) { return taken_.count(index) > 0; });
    if (!is_new) return;
    taken_.insert(variable.blocks.begin(), variable.blocks.end());
    found_.push_back(std::move(variable));
  }

  SizeCounts SizesOfBlocks(const Indices& indices) const {
    SizeCounts out;
    for (const std::size_t index : indices) ++out[blocks_[index].AskedBytes()];
    return out;
  }

  // Of what an optimizer has: that is the model that is trained.
  SizeCounts Trained() const {
    SizeCounts out;
    for (const HeldRow& row : held_.rows) {
      if (row.holder.kind != "parameter" || !row.holder.Is("optimized")) continue;
      for (const auto& [bytes, count] : SizesOfBlocks(row.indices)) out[bytes] += count;
    }
    return out;
  }

  // A local of a step under way: what an optimizer works on has the sizes of the weights.
  bool IsOfOptimizersStep(const Variable& variable) const { return IsOptimizerFile(variable.Holder(held_).file); }

  void FindSets() {
    const SizeCounts trained = Trained();
    if (Count(trained) < kLeastParameters || trained.size() < 2) return;
    for (Variable& variable : VariablesOf(held_)) {
      if (variable.role != OwnerRole::kVariable || IsOfOptimizersStep(variable)) continue;
      SizeCounts pool = SizesOfBlocks(variable.blocks);
      const std::uint64_t sets = TakeSets(pool, trained);
      if (sets == 0 || !IsShareOf(sets * Bytes(trained), kLeastAlike, variable.bytes)) continue;
      const std::uint64_t named =
          variable.BytesOf(held_, [](const trace::Holder& holder) { return holder.Is("state_dict"); });
      // One set is enough of it; more than one in anything but dictionaries of weights may as well be of gradients.
      if (sets > 1 && 2 * named < variable.bytes) continue;
      Add(std::move(variable));
    }
  }

  const CauseContext& context_;
  const HeldByName& held_;
  absl::Span<const timeline::BlockSpan> blocks_;
  std::set<std::size_t> taken_;
  std::vector<Variable> found_;
  bool has_gradients_ = false;
};

// Copies in half precision that autocast keeps to the end of its block. They are told by their sizes, so they are
// likely at most.
CauseFinding CastsOfAutocast(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kModelCopies;
  std::vector<std::size_t> blocks;
  std::uint64_t bytes = 0;
  for (const HeldRow& row : held.rows) {
    if (row.holder.kind != "autocast_cache") continue;
    blocks.insert(blocks.end(), row.indices.begin(), row.indices.end());
    bytes += row.bytes;
  }
  const std::string share = ShareText(bytes, AllocatedBytes(context));
  if (!IsMaterial(context, bytes) || !ShortageAt(context).has_value()) {
    return Absent(kKind, absl::StrCat("casts that autocast keeps hold ", FormatBytes(bytes), ", ", share));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.change = &changes::kNoAutocastCache;
  out.evidence.push_back(
      absl::StrCat("autocast keeps casts of weights in half precision until its block ends: ", FormatBytes(bytes),
                   " in ", FormatCount(blocks.size()), " blocks, ", share, " of what is allocated"));
  TakeBlocks(context, std::move(blocks), out);
  return out;
}

CauseFinding CopiesByOwner(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kModelCopies;
  if (const LeakGrowth* leak = LeakOf(context, LeakShape::kOther);
      leak != nullptr && IsMaterial(context, leak->bytes)) {
    CauseFinding out = FoundByOwners(context, kKind, *leak);
    out.evidence.push_back(absl::StrCat(OwnersText(out.holders), out.holders.size() == 1 ? " keeps" : " keep",
                                        " sets of weights of ", leak->steps, " steps: ", FormatBytes(leak->bytes),
                                        " in ", leak->blocks.size(), " blocks"));
    return out;
  }
  // An owner leaves no doubt that it is a copy. One that nothing trains and that has gradients is more than a method
  // such as a moving average takes.
  constexpr double kLeastWithGradients = 0.05;
  OwnedCopies copies(context, held);
  const double least = copies.has_gradients() ? kLeastWithGradients : kLeastSureShare;
  const std::vector<Variable> found = copies.Take();
  std::uint64_t bytes = 0;
  for (const Variable& variable : found) bytes += variable.bytes;
  if (CauseFinding casts = CastsOfAutocast(context, held); casts.finding == Finding::kFound && casts.bytes > bytes) {
    return casts;
  }
  if (found.empty()) return Absent(kKind, MostHeld(context));
  if (!IsMaterial(context, bytes) || !IsShareOf(bytes, least, AllocatedBytes(context))) {
    return Absent(kKind, absl::StrCat("copies of the weights hold ", FormatBytes(bytes), ", ",
                                      ShareText(bytes, AllocatedBytes(context)), " of what is allocated"));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  TakeVariables(context, found, out);
  out.evidence.push_back(absl::StrCat(OwnersText(out.holders), found.size() == 1 ? " is a copy" : " are copies",
                                      " of the weights that are trained: ", FormatBytes(out.bytes), " in ",
                                      out.blocks.size(), " blocks, ", ShareText(bytes, AllocatedBytes(context)),
                                      " of what is allocated"));
  return out;
}

CauseFinding DetectModelCopies(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kModelCopies;
  if (const HeldByName* const held = context.history->Owners(); held != nullptr) return CopiesByOwner(context, *held);
  const ProgramMemory memory(context);
  if (memory.Current() == nullptr) return Absent(kKind, "no pass forward was recorded before that moment");
  const Indices lasting = LastingSets(context, memory);
  Copies copies = CopiesOfTrained(memory, lasting);
  if (Copies said = CopiesByDeepCopy(context, memory, lasting);
      IsShareOf(memory.BytesOf(said.blocks), kLeastAlike, memory.BytesOf(copies.blocks))) {
    copies = std::move(said);
  }
  const std::uint64_t bytes = memory.BytesOf(copies.blocks);
  const std::string share = ShareText(bytes, AllocatedBytes(context));
  if (copies.blocks.empty()) return Absent(kKind, "no second set of blocks has the sizes of what is trained");
  if (!IsMaterial(context, bytes) || !IsShareOf(bytes, copies.least_share, AllocatedBytes(context))) {
    return Absent(
        kKind, absl::StrCat("copies of the weights hold ", FormatBytes(bytes), ", ", share, " of what is allocated"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes);
  out.blocks = copies.blocks;
  SetStacks(context, out);
  out.evidence.push_back(absl::StrCat("copies of the weights hold ", FormatBytes(bytes), " in ",
                                      FormatCount(copies.blocks.size()), " blocks, ", share, " of what is allocated",
                                      out.stacks.empty() ? "" : "; most of it from ",
                                      out.stacks.empty() ? "" : LabelOf(context, out.stacks.front())));
  out.evidence.push_back(copies.proof);
  return out;
}

constexpr CauseSpec kCopiesCauses[] = {
    {.kind = CauseKind::kModelCopies,
     .name = "model_copies",
     .sentence = "Several sets of the same weights are alive",
     .needs = CauseNeeds::kStacks,
     .detect = DetectModelCopies,
     .change = &changes::kCopiesOnHost},
};

}  // namespace

absl::Span<const CauseSpec> CopiesCauses() { return kCopiesCauses; }

}  // namespace ashlar::analyses
