#include "analyzer/formats/torch/torch_record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

// In the order of Field.
constexpr std::array<absl::string_view, kFieldCount> kNames = {
    "?",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "host_segments",
    "host_traces",
    "ashlar_names",
    "ashlar_peak_names",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "size",
    "state",
    "history",
    "real_size",
    "action",
    "addr",
    "device_free",
    "time_us",
    "compile_context",
    "user_metadata",
    "internal_metadata",
    "pool_id",
    "stage",
    "frames",
    "name",
    "filename",
    "line",
    "fx_node_op",
    "fx_node_name",
    "fx_node_target",
    "fx_original_trace",
};

}  // namespace

absl::string_view FieldName(Field field) { return kNames[static_cast<std::size_t>(field)]; }

std::uint8_t FieldNames::Look(const pickle::Value& key) const {
  const absl::string_view text = document_.Text(key);
  const auto found = std::find(kNames.begin() + 1, kNames.end(), text);
  return found == kNames.end() ? 0 : static_cast<std::uint8_t>(found - kNames.begin());
}

void NoteCounter::Add(absl::string_view name, absl::string_view message, std::uint64_t count) {
  Entry& entry = entries_[std::string(name)];
  const auto found = entry.messages.find(std::string(message));
  if (found != entry.messages.end()) {
    found->second += count;
  } else if (entry.messages.size() < kMaxMessages) {
    entry.messages.emplace(std::string(message), count);
  } else {
    entry.others += count;
  }
}

std::vector<trace::Note> NoteCounter::Take() const {
  std::vector<trace::Note> notes;
  for (const auto& [name, entry] : entries_) {
    for (const auto& [message, count] : entry.messages) notes.push_back(trace::Note{name, message, count});
    if (entry.others > 0) notes.push_back(trace::Note{name, "more of the same with other names", entry.others});
  }
  return notes;
}

namespace {

using pickle::Kind;
using pickle::Value;

// A container inside a setting's value is printed this deep; no known setting needs more than one level.
constexpr int kMaxPrintDepth = 3;
constexpr std::size_t kMaxPrintBytes = 64 * 1024;

#if defined(__cpp_lib_to_chars)
std::string ShortestText(double value) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}
#else
// What std::to_chars writes: with an exponent where that is shorter.
std::string ShortestText(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[400];
  int precision = 0;
  for (; precision < 17; ++precision) {
    std::snprintf(buffer, sizeof(buffer), "%.*e", precision, value);
    if (std::strtod(buffer, nullptr) == value) break;
  }
  const std::string scientific = buffer;
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  std::snprintf(buffer, sizeof(buffer), "%.*f", std::max(0, precision - exponent), value);
  return std::string(buffer).size() <= scientific.size() ? buffer : scientific;
}
#endif

// The shortest text that reads back as the same number, always recognisable as a float.
std::string PrintFloat(double value) {
  std::string text = ShortestText(value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

void Print(const pickle::Document& document, const Value& value, int depth, std::string* out);

// A dict prints as "1:0,2:4", a list as "1,2".
void PrintItems(const pickle::Document& document, const Value& value, int depth, std::string* out) {
  pickle::ItemCursor items = document.Items(value);
  const bool is_dict = value.kind() == Kind::kDict;
  for (std::size_t i = 0; const Value* item = items.Next(); ++i) {
    if (out->size() > kMaxPrintBytes) return;
    if (i > 0) out->push_back(is_dict && i % 2 == 1 ? ':' : ',');
    Print(document, *item, depth + 1, out);
  }
}

void Print(const pickle::Document& document, const Value& value, int depth, std::string* out) {
  switch (value.kind()) {
    case Kind::kBool:
      return absl::StrAppend(out, value.payload() != 0 ? "True" : "False");
    case Kind::kInt:
      return absl::StrAppend(out, static_cast<std::int64_t>(value.payload()));
    case Kind::kUint:
      return absl::StrAppend(out, value.payload());
    case Kind::kFloat:
      return absl::StrAppend(out, PrintFloat(value.AsDouble()));
    case Kind::kString:
      return absl::StrAppend(out, ToUtf8(document.Text(value).substr(0, kMaxPrintBytes)));
    case Kind::kNone:
      return absl::StrAppend(out, "None");
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSet:
      if (depth < kMaxPrintDepth) return PrintItems(document, value, depth, out);
      return absl::StrAppend(out, "...");
    case Kind::kBytes:
    case Kind::kBigInt:
      return absl::StrAppend(out, "<", pickle::KindName(value.kind()), ">");
  }
}

}  // namespace

std::string PrintValue(const pickle::Document& document, const Value& value) {
  std::string out;
  Print(document, value, 0, &out);
  return out;
}

namespace {

void NoteUnknownKey(const pickle::Document& document, const Value& key, const TorchRecordKind& kind,
                    NoteCounter* notes) {
  const std::string name =
      key.kind() == Kind::kString ? Quoted(document.Text(key)) : absl::StrCat("that is ", pickle::KindName(key.kind()));
  notes->Add("unknown_key", absl::StrCat(kind.name, " have a key ", name, ", which this version does not read"));
}

// The number as 64 bits; *negative tells the two meanings of the top bit apart.
bool IsInteger(const Value& value, bool* negative) {
  *negative = value.kind() == Kind::kInt && static_cast<std::int64_t>(value.payload()) < 0;
  return value.kind() == Kind::kInt || value.kind() == Kind::kUint;
}

}  // namespace

absl::Status Within(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::Status ExpectKind(const Value& value, Kind kind) {
  if (value.kind() == kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", pickle::KindName(kind), ", found ",
                                                 pickle::KindName(value.kind()), " (byte ", value.offset(), ")"));
}

Record::Record(const pickle::Document& document, const Value& dict, const TorchRecordKind& kind, FieldNames* names,
               NoteCounter* notes)
    : document_(document), dict_(dict) {
  pickle::ItemCursor items = document.Items(dict);
  while (const Value* key = items.Next()) {
    const Value* value = items.Next();
    const Field field = names->Of(*key);
    if (field == Field::kUnknown || (kind.fields >> static_cast<unsigned>(field) & 1) == 0) [[unlikely]] {
      NoteUnknownKey(document, *key, kind, notes);
    } else {
      values_[static_cast<std::size_t>(field)] = value;
    }
  }
}

absl::Status Record::Missing(Field field) const {
  return absl::InvalidArgumentError(absl::StrCat("'", FieldName(field), "' is missing (byte ", offset(), ")"));
}

absl::Status Record::Wrong(Field field, absl::string_view expected) const {
  const Value* value = Find(field);
  if (value == nullptr) return Missing(field);
  return absl::InvalidArgumentError(absl::StrCat("'", FieldName(field), "' is ", pickle::KindName(value->kind()),
                                                 ", expected ", expected, " (byte ", value->offset(), ")"));
}

absl::Status Record::GetSize(Field field, std::uint64_t* out) const {
  const Value* value = Find(field);
  bool negative = false;
  if (value == nullptr || !IsInteger(*value, &negative)) return Wrong(field, "a number");
  *out = value->payload();
  if (!negative && *out >> 63 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", FieldName(field), "' is ", negative ? "negative" : "2^63 or more",
                                                 " (byte ", value->offset(), ")"));
}

absl::Status Record::GetHandle(Field field, std::uint64_t* out) const {
  const Value* value = Find(field);
  bool negative = false;
  if (value == nullptr || !IsInteger(*value, &negative)) return Wrong(field, "a number");
  *out = value->payload();
  return absl::OkStatus();
}

absl::Status Record::GetSigned(Field field, std::int64_t* out) const {
  const Value* value = Find(field);
  if (value == nullptr || value->kind() != Kind::kInt) return Wrong(field, "a number that fits 64 bits with a sign");
  *out = static_cast<std::int64_t>(value->payload());
  return absl::OkStatus();
}

absl::Status Record::GetBool(Field field, bool* out) const {
  const Value* value = Find(field);
  if (value == nullptr || (value->kind() != Kind::kBool && value->kind() != Kind::kInt)) return Wrong(field, "a bool");
  *out = value->payload() != 0;
  return absl::OkStatus();
}

absl::Status Record::GetText(Field field, absl::string_view* out) const {
  const Value* value = Find(field);
  if (value == nullptr || value->kind() != Kind::kString) return Wrong(field, "a string");
  *out = document_.Text(*value);
  return absl::OkStatus();
}

absl::Status Record::GetContainer(Field field, Kind kind, const Value** out) const {
  const Value* value = Find(field);
  if (value == nullptr || value->kind() != kind) return Wrong(field, pickle::KindName(kind));
  *out = value;
  return absl::OkStatus();
}

absl::Status Record::GetPool(Field field, PoolId* out) const {
  constexpr absl::string_view kPair = "a pair of numbers";
  const Value* value = Find(field);
  if (value == nullptr || (value->kind() != Kind::kTuple && value->kind() != Kind::kList)) return Wrong(field, kPair);
  pickle::ItemCursor items = document_.Items(*value);
  const Value* first = items.Next();
  const Value* second = items.Next();
  bool negative = false;
  if (second == nullptr || items.Next() != nullptr || !IsInteger(*first, &negative) || !IsInteger(*second, &negative)) {
    return Wrong(field, kPair);
  }
  *out = PoolId{first->payload(), second->payload()};
  return absl::OkStatus();
}

}  // namespace ashlar::formats
