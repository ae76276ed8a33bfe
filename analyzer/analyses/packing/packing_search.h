// A depth-first search for a packing of at most a given height, for some hundreds of buffers. It follows the idea of
// MiniMalloc (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023):
//   - buffers are placed in order of ascending offset, each at the lowest offset that those below it allow, so that
//     every packing, pushed down, is met once (ties by a priority);
//   - a buffer that would leave room below it for another one is not placed yet;
//   - in every section (a set of buffers alive at one time) the lowest offset still possible plus the sum of what is
//     not placed must fit the height;
//   - what no unplaced buffer connects is searched separately.
#ifndef ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SEARCH_H_
#define ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/request.h"

namespace ashlar::analyses {

enum class SearchEnd : std::uint8_t {
  kFound,
  kNone,     // no packing of this height exists
  kStopped,  // out of steps
};

class PackingSearch {
 public:
  explicit PackingSearch(absl::Span<const trace::Lifetime> buffers);

  // Adds the steps taken to `steps`; at most `max_steps` of them, in ever longer attempts with different priorities.
  SearchEnd Run(std::uint64_t height, std::uint64_t max_steps, std::uint64_t& steps);

  // After kFound.
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }

 private:
  using Index = std::uint32_t;

  struct Buffer {
    std::uint64_t size = 0;
    std::uint64_t floor = 0;  // lowest offset that the placed ones leave
    Index first_section = 0;  // sections [first, end)
    Index end_section = 0;
    bool is_placed = false;
  };
  struct Section {
    std::vector<Index> buffers = {};
    std::uint64_t floor = 0;  // no unplaced buffer of it can lie lower
    std::uint64_t rest = 0;   // sizes of the unplaced
    std::uint64_t mark = 0;
  };
  struct Change {  // of one value, for undoing
    std::uint64_t* value;
    std::uint64_t before;
  };
  struct Keys {  // what priorities are made of
    double length = 0;
    double sections = 0;
    double area = 0;
    double total = 0;  // of what is not placed, in the fullest section
  };
  using Key = double Keys::*;
  struct Part {  // unplaced buffers, and the sections they span
    std::vector<Index> buffers;
    Index first_section = 0;
    Index end_section = 0;
  };
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t rank = 0;
    Index index = 0;
    auto operator<=>(const Place&) const = default;
  };

  void MakeSections(absl::Span<const trace::Lifetime> buffers);
  void Start(std::uint64_t attempt);
  void Rank(const Part& part);
  bool SearchPart(const Part& part, Place least);
  bool SearchRest(const Part& part, Index placed, Place least);
  std::vector<Place> Candidates(const Part& part, Place least);
  bool IsCovered(Index index) const;
  void PlaceBuffer(Index index);
  void RaiseFloors(Index index, std::uint64_t top);
  void RaiseSections(std::uint64_t top, Index index);
  bool CanFit(const Part& part, std::uint64_t offset);
  void Set(std::uint64_t& value, std::uint64_t to);
  void UndoTo(std::size_t changes, std::size_t placed);

  std::vector<Buffer> buffers_;
  std::vector<Section> sections_;
  std::vector<std::vector<Index>> overlaps_;
  std::vector<std::uint64_t> crossings_;  // unplaced buffers that span sections i and i + 1
  std::vector<Keys> keys_;
  std::vector<std::uint64_t> ranks_;  // the lower, the sooner
  std::uint64_t attempt_ = 0;
  std::vector<Change> changes_;
  std::vector<Index> placed_;
  std::vector<Index> touched_;
  std::uint64_t mark_ = 0;
  std::uint64_t height_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t step_limit_ = 0;
  bool is_too_high_ = false;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PACKING_PACKING_SEARCH_H_
