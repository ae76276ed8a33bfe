// One dictionary of a snapshot with its known fields found, and the typed access to them. Every error names the
// field and the byte offset; the caller puts the path in front ("device_traces[0][17]: ").
#ifndef ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_RECORD_H_
#define ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_RECORD_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/pickle/pickle_document.h"

namespace ashlar::formats {

// The dictionary keys of a PyTorch snapshot as small integers. A file has each key text once or a few times (the
// pickler memoises them), so a key's text is compared once and later found by its index.
enum class Field : std::uint8_t {
  kUnknown,
  // top level
  kSegments,
  kDeviceTraces,
  kAllocatorSettings,
  kExternalAnnotations,
  kHostSegments,
  kHostTraces,
  kAshlarNames,
  kAshlarPeakNames,
  // segments and blocks
  kDevice,
  kAddress,
  kTotalSize,
  kAllocatedSize,
  kActiveSize,
  kRequestedSize,
  kStream,
  kSegmentType,
  kSegmentPoolId,
  kIsExpandable,
  kBlocks,
  kSize,
  kState,
  kHistory,
  kRealSize,
  // trace entries
  kAction,
  kAddr,
  kDeviceFree,
  kTimeUs,
  kCompileContext,
  kUserMetadata,
  kInternalMetadata,
  kPoolId,
  // annotations
  kStage,
  // frames
  kFrames,
  kName,
  kFilename,
  kLine,
  kFxNodeOp,
  kFxNodeName,
  kFxNodeTarget,
  kFxOriginalTrace,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::kFxOriginalTrace) + 1;

// As PyTorch spells it.
absl::string_view FieldName(Field field);

class FieldNames {
 public:
  explicit FieldNames(const pickle::Document& document)
      : document_(document), known_(document.text_count(), kNotLooked) {}
  // The texts from this index on are others now.
  void CutBack(std::size_t texts) {
    if (texts < known_.size()) known_.resize(texts);
  }

  // kUnknown for other texts and for keys that are not texts.
  Field Of(const pickle::Value& key) {
    if (key.kind() != pickle::Kind::kString) return Field::kUnknown;
    if (key.payload() >= known_.size()) [[unlikely]]
      known_.resize(document_.text_count(), kNotLooked);
    std::uint8_t& known = known_[key.payload()];
    if (known == kNotLooked) [[unlikely]]
      known = Look(key);
    return static_cast<Field>(known);
  }

 private:
  static constexpr std::uint8_t kNotLooked = 0xff;
  std::uint8_t Look(const pickle::Value& key) const;

  const pickle::Document& document_;
  std::vector<std::uint8_t> known_;  // by text index
};

// Counts the survivable oddities of a file by name and detail; they come out sorted, whatever order they were met in.
class NoteCounter {
 public:
  // `name` is the stable key, `message` the sentence for people. A file with endless different messages under one
  // name gets the first kMaxMessages and one line for the rest.
  void Add(absl::string_view name, absl::string_view message, std::uint64_t count = 1);

  std::vector<trace::Note> Take() const;

 private:
  static constexpr std::size_t kMaxMessages = 32;

  struct Entry {
    std::map<std::string, std::uint64_t, std::less<>> messages;
    std::uint64_t others = 0;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

// A value of a pickle as text, for what the model keeps as text: settings, labels. Deep or long ones are cut off.
//
//   PrintValue(document, value)   "True", "1:0,2:4", "0.8"

std::string PrintValue(const pickle::Document& document, const pickle::Value& value);

// A kind of dictionary and the fields read in it; any other key becomes a note.
struct TorchRecordKind {
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
  Record(const pickle::Document& document, const pickle::Value& dict, const TorchRecordKind& kind, FieldNames* names,
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

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_TORCH_TORCH_RECORD_H_
