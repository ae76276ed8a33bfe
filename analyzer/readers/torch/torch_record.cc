#include "analyzer/readers/torch/torch_record.h"

#include "absl/strings/str_cat.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

using pickle::Kind;
using pickle::Value;

void NoteUnknownKey(const pickle::Document& document, const Value& key, const RecordKind& kind, NoteCounter* notes) {
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

Record::Record(const pickle::Document& document, const Value& dict, const RecordKind& kind, FieldNames* names,
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

}  // namespace ashlar::readers
