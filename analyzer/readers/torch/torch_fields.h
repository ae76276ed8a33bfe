// The dictionary keys of a PyTorch snapshot as small integers. A file has each key text once or a few times (the
// pickler memoises them), so a key's text is compared once and later found by its index.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_FIELDS_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_FIELDS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/readers/pickle/pickle_document.h"

namespace ashlar::readers {

enum class Field : std::uint8_t {
  kUnknown,
  // top level
  kSegments,
  kDeviceTraces,
  kAllocatorSettings,
  kExternalAnnotations,
  kHostSegments,
  kHostTraces,
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

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_FIELDS_H_
