#include "analyzer/analyses/holders/variables.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::analyses {
namespace {

struct KindRole {
  absl::string_view kind;
  OwnerRole role;
};

constexpr std::array<KindRole, 21> kRoles = {{
    {"parameter", OwnerRole::kWeights},  {"buffer", OwnerRole::kWeights},
    {"gradient", OwnerRole::kGradient},  {"optimizer_state", OwnerRole::kOptimizer},
    {"graph", OwnerRole::kGraph},        {"local", OwnerRole::kVariable},
    {"global", OwnerRole::kVariable},    {"attribute", OwnerRole::kVariable},
    {"element", OwnerRole::kVariable},   {"closure", OwnerRole::kVariable},
    {"generator", OwnerRole::kVariable}, {"hook", OwnerRole::kHook},
    {"traceback", OwnerRole::kError},    {"cycle", OwnerRole::kCycle},
    {"unseen", OwnerRole::kUnseen},      {"temporary", OwnerRole::kAtWork},
    {"workspace", OwnerRole::kLibrary},  {"graph_pool", OwnerRole::kLibrary},
    {"bucket", OwnerRole::kLibrary},     {"autocast_cache", OwnerRole::kLibrary},
    {"not_found", OwnerRole::kNobody},
}};

// "models[].net.*.weight" -> "models[]"; what an optimizer keeps of a parameter ("state[weight]") is no element.
std::string VariableName(absl::string_view name) {
  const std::size_t element = name.find("[]");
  return std::string(element == absl::string_view::npos ? name : name.substr(0, element + 2));
}

bool HasVariable(OwnerRole role) {
  return role != OwnerRole::kAtWork && role != OwnerRole::kLibrary && role != OwnerRole::kNobody;
}

}  // namespace

OwnerRole RoleOf(const trace::Holder& holder) {
  const auto* const found =
      std::find_if(kRoles.begin(), kRoles.end(), [&](const KindRole& one) { return one.kind == holder.kind; });
  if (found == kRoles.end()) return OwnerRole::kNobody;
  const bool is_of_optimizer = found->role == OwnerRole::kVariable && holder.Is("of_optimizer");
  return is_of_optimizer ? OwnerRole::kOptimizer : found->role;
}

bool IsOfOneModel(const trace::Holder& holder) {
  const OwnerRole role = RoleOf(holder);
  const bool is_model = role == OwnerRole::kWeights || role == OwnerRole::kGradient || role == OwnerRole::kOptimizer;
  return is_model && !absl::StrContains(holder.name, "[]");
}

std::string HolderPlace(const trace::Holder& holder) {
  std::string out = absl::StrCat("`", holder.name, "`");
  if (holder.file.empty()) return out;
  absl::StrAppend(&out, " in ", holder.file.substr(holder.file.rfind('/') + 1));
  if (holder.line > 0) absl::StrAppend(&out, ":", holder.line);
  if (!holder.function.empty() && holder.function != "<module>") absl::StrAppend(&out, " ", holder.function);
  return out;
}

trace::Holder Variable::Holder(const HeldByName& held) const {
  trace::Holder out = held.rows[rows.front()].holder;
  out.name = name;
  return out;
}

bool Variable::IsOfRunningPass(const HeldByName& held) const {
  const std::uint64_t of_calls = BytesOf(held, [](const trace::Holder& holder) {
    return holder.Is("in_call") && !absl::StartsWith(holder.name, "self.");
  });
  return 2 * of_calls > bytes;
}

std::vector<Variable> VariablesOf(const HeldByName& held) {
  std::map<std::tuple<std::string, std::string, std::string>, Variable> gathered;
  for (std::size_t i = 0; i < held.rows.size(); ++i) {
    const trace::Holder& holder = held.rows[i].holder;
    if (!HasVariable(RoleOf(holder))) continue;
    Variable& variable = gathered[{VariableName(holder.name), holder.file, holder.function}];
    variable.name = VariableName(holder.name);
    variable.rows.push_back(i);
    variable.bytes += held.rows[i].bytes;
    variable.blocks.insert(variable.blocks.end(), held.rows[i].indices.begin(), held.rows[i].indices.end());
  }
  std::vector<Variable> out;
  for (auto& [key, variable] : gathered) {
    std::sort(variable.blocks.begin(), variable.blocks.end());
    std::map<OwnerRole, std::uint64_t> bytes_of;
    for (const std::size_t row : variable.rows) bytes_of[RoleOf(held.rows[row].holder)] += held.rows[row].bytes;
    for (const auto& [role, bytes] : bytes_of) {
      if (bytes <= variable.bytes_of_role && variable.role != OwnerRole::kNobody) continue;
      variable.role = role;
      variable.bytes_of_role = bytes;
    }
    out.push_back(std::move(variable));
  }
  std::stable_sort(out.begin(), out.end(), [](const Variable& a, const Variable& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace ashlar::analyses
