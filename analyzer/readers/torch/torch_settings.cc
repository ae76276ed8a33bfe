// allocator_settings: the settings the recording allocator ran under, every key printed.
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/readers/torch/torch_context.h"
#include "analyzer/readers/torch/torch_print.h"
#include "analyzer/readers/torch/torch_record.h"

namespace ashlar::readers {
namespace {

using pickle::Kind;
using pickle::Value;

// -1, and the largest number of either width, mean no limit.
std::optional<std::uint64_t> SplitLimit(const Value& value) {
  const bool is_limit = value.kind() == Kind::kInt && static_cast<std::int64_t>(value.payload()) >= 0 &&
                        value.payload() != static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return is_limit ? std::optional(value.payload()) : std::nullopt;
}

double Number(const Value& value) {
  if (value.kind() == Kind::kFloat) return value.AsDouble();
  return value.kind() == Kind::kInt ? static_cast<double>(static_cast<std::int64_t>(value.payload())) : 0;
}

void ReadSetting(const std::string& key, const Value& value, trace::RecordedSettings* settings) {
  if (key == "max_split_size") settings->max_split_size_bytes = SplitLimit(value);
  if (key == "garbage_collection_threshold") settings->garbage_collection_threshold = Number(value);
  if (key == "expandable_segments") settings->expandable_segments = value.kind() == Kind::kBool && value.payload() != 0;
  if (absl::StartsWith(key, "PYTORCH_") && absl::EndsWith(key, "ALLOC_CONF") && !settings->values[key].empty()) {
    settings->conf = settings->values[key];
  }
}

}  // namespace

absl::Status ReadSettings(const Value& value, TorchContext* context) {
  if (value.kind() != Kind::kDict) return Within("allocator_settings", ExpectKind(value, Kind::kDict));
  if (absl::Status status = context->Visit(value); !status.ok()) return Within("allocator_settings", status);
  trace::RecordedSettings& settings = context->snapshot.settings.emplace();
  pickle::ItemCursor items = context->document.Items(value);
  while (const Value* key = items.Next()) {
    const Value* setting = items.Next();
    const std::string name = PrintValue(context->document, *key);
    const std::string text = PrintValue(context->document, *setting);
    settings.values[name] = text;
    ReadSetting(name, *setting, &settings);
    context->seen.has_cache_limits |= name == "max_cached_size";
  }
  context->snapshot.traits.has_settings = true;
  return absl::OkStatus();
}

}  // namespace ashlar::readers
