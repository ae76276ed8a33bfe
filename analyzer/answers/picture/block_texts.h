// The texts that the program put on blocks (trace::LabelTable), one for each block that has any: the last annotation
// put on it while it lived, else the thread's metadata when it was allocated, else the allocator's own mark.
//
//   const BlockTexts texts(timeline, snapshot.labels);
//   texts.texts()[texts.TextOf(block.alloc_event)];   // "the first activation"
//
// Immutable; safe from any thread.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_BLOCK_TEXTS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_BLOCK_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/trace/label_table.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

class BlockTexts {
 public:
  BlockTexts() = default;
  BlockTexts(const timeline::Timeline& timeline, const trace::LabelTable& labels);

  const std::vector<std::string>& texts() const { return texts_; }
  // Index in texts() of the block that this event allocated; kNoText where it has none.
  std::uint32_t TextOf(timeline::EventIndex alloc_event) const;

 private:
  void Put(timeline::EventIndex alloc_event, const std::string& text);

  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  absl::flat_hash_map<timeline::EventIndex, std::uint32_t> text_of_;  // by the allocation's event
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_BLOCK_TEXTS_H_
