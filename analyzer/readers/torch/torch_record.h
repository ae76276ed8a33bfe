// One dictionary of a snapshot with its known fields found, and the typed access to them. Every error names the
// field and the byte offset; the caller puts the path in front ("device_traces[0][17]: ").
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_RECORD_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_RECORD_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/readers/pickle/pickle_document.h"
#include "analyzer/readers/torch/torch_fields.h"
#include "analyzer/readers/torch/torch_notes.h"

namespace ashlar::readers {

// A kind of dictionary and the fields read in it; any other key becomes a note.
struct RecordKind {
  absl::string_view name;  // "trace entries": for notes
  std::uint64_t fields;    // bit i: Field i belongs here
};
constexpr std::uint64_t FieldSet(std::initializer_list<Field> fields) {
  std::uint64_t set = 0;
  for (Field field : fields) set |= std::uint64_t{1} << static_cast<unsigned>(field);
  return set;
}

// "path: message" with the code kept; OK stays OK.
absl::Status Within(const std::string& path, const absl::Status& status);

class Record {
 public:
  // `dict` must be a dict (see ExpectKind). Keys outside `kind` are counted in `notes`.
  Record(const pickle::Document& document, const pickle::Value& dict, const RecordKind& kind, FieldNames* names,
         NoteCounter* notes);

  // nullptr where the dictionary has no such key.
  const pickle::Value* Find(Field field) const { return values_[static_cast<std::size_t>(field)]; }
  bool Has(Field field) const { return Find(field) != nullptr; }
  std::uint64_t offset() const { return dict_.offset(); }

  // Numbers below 2^63, as every size and address of a device is.
  absl::Status GetSize(Field field, std::uint64_t* out) const;
  // Any 64-bit number; a negative one wraps, as a handle printed signed does.
  absl::Status GetHandle(Field field, std::uint64_t* out) const;
  absl::Status GetSigned(Field field, std::int64_t* out) const;
  absl::Status GetBool(Field field, bool* out) const;
  absl::Status GetText(Field field, absl::string_view* out) const;
  absl::Status GetContainer(Field field, pickle::Kind kind, const pickle::Value** out) const;
  absl::Status GetPool(Field field, PoolId* out) const;

  absl::Status Missing(Field field) const;
  absl::Status Wrong(Field field, absl::string_view expected) const;

 private:
  const pickle::Document& document_;
  const pickle::Value dict_;
  std::array<const pickle::Value*, kFieldCount> values_{};
};

// "expected a list, found a number (byte 12)".
absl::Status ExpectKind(const pickle::Value& value, pickle::Kind kind);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_RECORD_H_
