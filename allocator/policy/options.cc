#include "allocator/policy/options.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::policy {
namespace {

constexpr std::array<std::pair<Compat, absl::string_view>, 8> kCompatNames = {{
    {Compat::kTorch113, "torch-1.13"},
    {Compat::kTorch26, "torch-2.6"},
    {Compat::kTorch210, "torch-2.10"},
    {Compat::kTorch212, "torch-2.12"},
    {Compat::kTorchLatest, "torch-latest"},
    {Compat::kTorchLatest, "torch-2.13"},  // names that are taken; the one before is printed
    {Compat::kTorchLatest, "torch-2.14"},
    {Compat::kTorchLatest, "torch-2.15"},
}};

constexpr std::array<std::pair<FreeOrder, absl::string_view>, 3> kOrderNames = {{
    {FreeOrder::kAddress, "address"},
    {FreeOrder::kPerBlockCounter, "per-block-counter"},
    {FreeOrder::kPerSegmentCounter, "per-segment-counter"},
}};

template <typename Table>
auto ParseName(const Table& table, absl::string_view name,
               absl::string_view what) -> absl::StatusOr<typename Table::value_type::first_type> {
  std::string known;
  for (const auto& [value, text] : table) {
    if (text == name) return value;
    absl::StrAppend(&known, known.empty() ? "" : ", ", text);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no ", what, ": use one of ", known));
}

template <typename Table, typename Value>
absl::string_view NameOf(const Table& table, Value value) {
  for (const auto& [candidate, text] : table) {
    if (candidate == value) return text;
  }
  return "";
}

}  // namespace

FreeOrder DefaultFreeOrder(Compat compat) {
  if (compat == Compat::kTorch212) return FreeOrder::kPerBlockCounter;
  return compat == Compat::kTorchLatest ? FreeOrder::kPerSegmentCounter : FreeOrder::kAddress;
}

void KeepFreeOrder(const Options& of_run, Options& options) {
  if (options.policy == of_run.policy) options.free_order = of_run.free_order;
}

absl::string_view CompatName(Compat compat) { return NameOf(kCompatNames, compat); }
absl::StatusOr<Compat> ParseCompat(absl::string_view name) { return ParseName(kCompatNames, name, "version"); }
absl::string_view FreeOrderName(FreeOrder order) { return NameOf(kOrderNames, order); }
absl::StatusOr<FreeOrder> ParseFreeOrder(absl::string_view name) {
  return ParseName(kOrderNames, name, "order of free blocks");
}

}  // namespace ashlar::policy
