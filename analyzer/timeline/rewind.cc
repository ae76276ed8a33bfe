#include "analyzer/timeline/rewind.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "analyzer/timeline/occupancy.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::timeline {
namespace {

// What the pass remembers of a block that stands, by id; ids below undone.blocks.size() are blocks before the window,
// others are given anew when their block is gone.
struct Placed {
  EventIndex alloc_event = kBeforeWindow;
  std::uint64_t least_bytes = 0;     // its rounded request
  std::uint64_t max_tail_bytes = 0;  // how much more it may span
  bool is_size_open = false;         // later placements may change it
};

class PlacementPass {
 public:
  PlacementPass(absl::Span<const trace::Event> events, const BlockSizeRule& rule, UndoneTrace& undone)
      : events_(events), rule_(rule), undone_(undone), picture_(undone.picture) {}

  absl::StatusOr<PlacementCounts> Run() {
    SettleStart();
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (absl::Status status = Step(i); !status.ok()) {
        return Disagreement(undone_.device, static_cast<std::int64_t>(i), events_[i], status.message());
      }
    }
    for (const auto& [address, occupied] : undone_.picture.blocks()) {
      counts_.unknown_tails += undone_.blocks[occupied.id].size_is_minimum;
    }
    return counts_;
  }

 private:
  // Rests that show at once: too small to be a free block, or of a block that is never split.
  void SettleStart() {
    placed_.resize(undone_.blocks.size());
    for (const auto& [address, occupied] : undone_.picture.blocks()) {
      StateBlock& block = undone_.blocks[occupied.id];
      if (!block.size_is_minimum) continue;
      const std::uint64_t rest = picture_.GapEnd(address) - block.End();
      const std::uint64_t max_tail = MaxTailBytes(rule_, picture_.SegmentAround(address)->Kind(), block.size_bytes);
      placed_[occupied.id] = {.least_bytes = block.size_bytes, .max_tail_bytes = max_tail};
      if (rest <= max_tail) {
        SetStartSize(occupied.id, block.size_bytes + rest);
      } else if (max_tail < kMinBlockBytes) {
        block.size_is_minimum = false;
      } else {
        placed_[occupied.id].is_size_open = true;
      }
    }
  }

  void SetStartSize(std::uint32_t id, std::uint64_t size_bytes) {
    StateBlock& block = undone_.blocks[id];
    block.size_bytes = size_bytes;
    block.size_is_minimum = false;
    undone_.picture.ResizeBlock(block.address, size_bytes);
    picture_.ResizeBlock(block.address, size_bytes);
    placed_[id].is_size_open = false;
  }

  absl::Status Step(std::size_t index) {
    const trace::Event& event = events_[index];
    if (IsSegmentEvent(event.action)) return ApplySegmentEvent(event, undone_.facts.At(index, true), 0, picture_);
    if (event.action == trace::Action::kAlloc) return Place(index);
    if (event.action == trace::Action::kFreeCompleted) Remove(event.address);
    return absl::OkStatus();
  }

  void Remove(std::uint64_t address) {
    const std::uint32_t id = picture_.BlockAt(address)->id;
    if (id >= undone_.blocks.size()) free_ids_.push_back(id);
    picture_.RemoveBlock(address);
  }

  std::uint32_t NewId(const Placed& placed) {
    if (free_ids_.empty()) {
      placed_.push_back(placed);
      return static_cast<std::uint32_t>(placed_.size() - 1);
    }
    const std::uint32_t id = free_ids_.back();
    free_ids_.pop_back();
    placed_[id] = placed;
    return id;
  }

  absl::Status Place(std::size_t index) {
    const trace::Event& event = events_[index];
    const SegmentRange* segment = picture_.SegmentAround(event.address);
    if (segment == nullptr) return absl::FailedPreconditionError("expected a segment around it, found none");
    LookBelow(event.address, *segment);
    const std::uint64_t gap_bytes = picture_.GapEnd(event.address) - event.address;
    if (event.size_bytes > gap_bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("expected room for the request, found only ", gap_bytes, " B free there"));
    }
    const std::uint64_t wanted_bytes = rule_.rounded_bytes(event.size_bytes);
    const std::uint64_t rounded_bytes = std::min(wanted_bytes, gap_bytes);
    const std::uint64_t by_rule = BlockBytes(rule_, segment->Kind(), rounded_bytes, gap_bytes);
    std::uint64_t size_bytes = undone_.facts.BlockSize(index);
    const bool is_final_known = size_bytes != 0;
    if (rounded_bytes < wanted_bytes || (is_final_known && size_bytes != by_rule)) {
      ++counts_.rule_disagreements;
    }
    if (!is_final_known) undone_.facts.SetBlockSize(index, size_bytes = by_rule);
    const std::uint32_t id = NewId(
        {.alloc_event = static_cast<EventIndex>(index), .least_bytes = rounded_bytes, .is_size_open = !is_final_known});
    return picture_.AddBlock({.address = event.address, .size_bytes = size_bytes, .id = id});
  }

  // What a placement at `address` says about the block below it.
  void LookBelow(std::uint64_t address, const SegmentRange& segment) {
    const OccupiedBlock* below = picture_.BlockBelow(address);
    const std::uint64_t low = below == nullptr ? segment.address : below->End();
    if (below != nullptr && placed_[below->id].is_size_open) {
      const OccupiedBlock block = *below;
      if (placed_[block.id].alloc_event == kBeforeWindow) {
        if (address >= low && address - low <= placed_[block.id].max_tail_bytes) return Reveal(block, address);
      } else if (address < low && address >= block.address + placed_[block.id].least_bytes) {
        return Shrink(block, address);
      }
    }
    if (address > low) ++counts_.unexplained_gaps;
  }

  void Reveal(const OccupiedBlock& block, std::uint64_t end) {
    SetStartSize(block.id, end - block.address);
    ++counts_.inferred_tails;
  }

  // The rule said the block kept its rest; a block inside that rest says it did not.
  void Shrink(const OccupiedBlock& block, std::uint64_t end) {
    picture_.ResizeBlock(block.address, end - block.address);
    undone_.facts.SetBlockSize(static_cast<std::size_t>(placed_[block.id].alloc_event), end - block.address);
    ++counts_.rule_disagreements;
  }

  absl::Span<const trace::Event> events_;
  const BlockSizeRule& rule_;
  UndoneTrace& undone_;
  Occupancy picture_;
  std::vector<Placed> placed_;
  std::vector<std::uint32_t> free_ids_;
  PlacementCounts counts_;
};

}  // namespace

absl::StatusOr<PlacementCounts> PlaceBlocks(absl::Span<const trace::Event> events, const BlockSizeRule& rule,
                                            UndoneTrace& undone) {
  return PlacementPass(events, rule, undone).Run();
}

namespace {

SegmentRange RangeOf(const trace::SnapshotSegment& segment) {
  return {.address = segment.address,
          .size_bytes = segment.size_bytes,
          .stream = segment.stream,
          .is_small_pool = segment.is_small_pool,
          .is_expandable = segment.is_expandable,
          .pool = segment.pool,
          .stack = segment.stack};
}

StateSegment SegmentOf(const SegmentRange& range) {
  return {.address = range.address,
          .size_bytes = range.size_bytes,
          .stream = range.stream,
          .is_small_pool = range.is_small_pool,
          .is_expandable = range.is_expandable,
          .pool = range.pool,
          .stack = range.stack};
}

StateBlock BlockOf(const trace::SnapshotBlock& block) {
  return {.address = block.address,
          .size_bytes = block.size_bytes,
          .requested_bytes = block.requested_bytes,
          .state = block.state,
          .stack = block.stack};
}

class Rewinder {
 public:
  Rewinder(const DeviceTrace& trace, const BlockSizeRule& rule) : trace_(trace), events_(trace.events), rule_(rule) {
    undone_.device = trace.device;
    undone_.facts = FactColumns(events_.size());
  }

  absl::StatusOr<UndoneTrace> Run() {
    if (absl::Status status = LoadFinalState(); !status.ok()) return status;
    for (std::size_t i = events_.size(); i-- > 0;) {
      if (absl::Status status = Undo(i); !status.ok()) {
        return Disagreement(undone_.device, static_cast<std::int64_t>(i), events_[i],
                            absl::StrCat("undone from the final segments: ", status.message(),
                                         "; the trace and the segments disagree"));
      }
    }
    return std::move(undone_);
  }

  std::uint64_t roundings_too_big() const { return roundings_too_big_; }
  std::uint64_t stream_mismatches() const { return stream_mismatches_; }

 private:
  absl::Status LoadFinalState() {
    for (const trace::SnapshotSegment* segment : trace_.segments) {
      absl::Status status = picture().AddSegment(RangeOf(*segment));
      for (const trace::SnapshotBlock& block : segment->blocks) {
        if (status.ok() && block.state != trace::BlockState::kFree) status = LoadBlock(block);
      }
      if (!status.ok()) {
        return absl::FailedPreconditionError(absl::StrCat("device ", undone_.device, ", final segment at ",
                                                          FormatAddress(segment->address), ": ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status LoadBlock(const trace::SnapshotBlock& block) {
    if (block.requested_bytes.value_or(0) > block.size_bytes) {
      return absl::FailedPreconditionError(absl::StrCat("expected a block of at least its ", *block.requested_bytes,
                                                        " requested B at ", FormatAddress(block.address), ", found ",
                                                        block.size_bytes));
    }
    return Add(BlockOf(block));
  }

  absl::Status Add(const StateBlock& block) {
    return picture().AddBlock({.address = block.address,
                               .size_bytes = block.size_bytes,
                               .id = NewId(block),
                               .is_pending = block.state == trace::BlockState::kPending});
  }

  // Ids of blocks that are undone are given anew.
  std::uint32_t NewId(const StateBlock& block) {
    if (free_ids_.empty()) {
      undone_.blocks.push_back(block);
      return static_cast<std::uint32_t>(undone_.blocks.size() - 1);
    }
    const std::uint32_t id = free_ids_.back();
    free_ids_.pop_back();
    undone_.blocks[id] = block;
    return id;
  }

  absl::Status Undo(std::size_t i) {
    const trace::Event& event = events_[i];
    switch (event.action) {
      case trace::Action::kAlloc:
        return UndoAlloc(event, i);
      case trace::Action::kFreeRequested:
        return UndoFreeRequested(event);
      case trace::Action::kFreeCompleted:
        return UndoFreeCompleted(event);
      case trace::Action::kSegmentAlloc:
        return UndoSegmentAlloc(event, i);
      case trace::Action::kSegmentFree:
        return UndoSegmentFree(event);
      case trace::Action::kSegmentMap:
        return UndoMap(event, i);
      case trace::Action::kSegmentUnmap:
        return UndoUnmap(event);
      default:
        return absl::OkStatus();
    }
  }

  // The block that starts at the event's address, in the state and with the request that the event implies.
  absl::StatusOr<OccupiedBlock*> Expect(const trace::Event& event, bool is_pending) {
    OccupiedBlock* block = picture().BlockAt(event.address);
    if (block != nullptr && block->is_pending == is_pending &&
        undone_.blocks[block->id].requested_bytes.value_or(event.size_bytes) == event.size_bytes) {
      return block;
    }
    const std::string expected = absl::StrCat("expected a ", is_pending ? "pending" : "live", " block of ",
                                              event.size_bytes, " requested B there, found ");
    if (block == nullptr) {
      const char* found =
          std::as_const(picture()).SegmentAround(event.address) ? "no block that starts there" : "no segment around it";
      return absl::FailedPreconditionError(absl::StrCat(expected, found));
    }
    const std::optional<std::uint64_t>& requested = undone_.blocks[block->id].requested_bytes;
    return absl::FailedPreconditionError(
        absl::StrCat(expected, "a ", block->is_pending ? "pending" : "live", " one of ",
                     requested ? absl::StrCat(*requested) : std::string("unknown"), " requested B"));
  }

  void CompareStreams(const trace::Event& event) {
    const SegmentRange* segment = picture().SegmentAround(event.address);
    if (segment != nullptr && segment->stream != event.stream) ++stream_mismatches_;
  }

  absl::Status UndoAlloc(const trace::Event& event, std::size_t i) {
    const absl::StatusOr<OccupiedBlock*> block = Expect(event, /*is_pending=*/false);
    if (!block.ok()) return block.status();
    CompareStreams(event);
    // A size that only a free event told is a guess; the placement pass knows better.
    const std::uint32_t id = (*block)->id;
    if (!undone_.blocks[id].size_is_minimum) undone_.facts.SetBlockSize(i, (*block)->size_bytes);
    picture().RemoveBlock(event.address);
    free_ids_.push_back(id);
    return absl::OkStatus();
  }

  absl::Status UndoFreeRequested(const trace::Event& event) {
    const absl::StatusOr<OccupiedBlock*> block = Expect(event, /*is_pending=*/true);
    if (!block.ok()) return block.status();
    (*block)->is_pending = false;
    undone_.blocks[(*block)->id].state = trace::BlockState::kLive;
    undone_.blocks[(*block)->id].requested_bytes = event.size_bytes;
    return absl::OkStatus();
  }

  absl::Status UndoFreeCompleted(const trace::Event& event) {
    const bool is_size_known = event.block_size_bytes > 0;
    std::uint64_t size_bytes = is_size_known ? event.block_size_bytes : rule_.rounded_bytes(event.size_bytes);
    SegmentRange* segment = picture().SegmentAround(event.address);
    if (segment != nullptr) {
      if (!segment->is_pool_known) segment->is_small_pool = size_bytes <= rule_.small_max_bytes;
      segment->is_pool_known = true;
      CompareStreams(event);
      const std::uint64_t gap_bytes = picture().GapEnd(event.address) - event.address;
      if (size_bytes > gap_bytes && event.size_bytes <= gap_bytes) {
        size_bytes = gap_bytes;
        ++roundings_too_big_;
      }
    }
    return Add({.address = event.address,
                .size_bytes = size_bytes,
                .requested_bytes = event.size_bytes,
                .state = trace::BlockState::kPending,
                .size_is_minimum = !is_size_known});
  }

  absl::Status UndoSegmentAlloc(const trace::Event& event, std::size_t i) {
    if (const SegmentRange* segment = picture().SegmentStartingAt(event.address); segment != nullptr) {
      undone_.facts.SetSegment(i, {.is_small_pool = segment->is_small_pool, .pool = segment->pool});
    }
    return picture().RemoveSegment(event.address, event.size_bytes);
  }

  absl::Status UndoSegmentFree(const trace::Event& event) {
    return picture().AddSegment({.address = event.address,
                                 .size_bytes = event.size_bytes,
                                 .stream = event.stream,
                                 .is_small_pool = event.size_bytes <= 2 * rule_.small_max_bytes,
                                 .pool = event.pool.value_or(PoolId{})});
  }

  absl::Status UndoMap(const trace::Event& event, std::size_t i) {
    const SegmentRange* around = picture().SegmentAround(event.address);
    if (around != nullptr) {
      undone_.facts.SetSegment(
          i, {.is_small_pool = around->is_small_pool,
              .pool = around->pool,
              .joins_left =
                  around->address<event.address, .joins_right = around->End()> event.address + event.size_bytes});
    }
    return picture().Unmap(event.address, event.size_bytes, 0);
  }

  static bool CanJoin(const SegmentRange* neighbour, const SegmentRange& piece) {
    if (neighbour == nullptr || !neighbour->is_expandable || neighbour->stream != piece.stream) return false;
    if (!neighbour->is_pool_known || !piece.is_pool_known) return true;
    return neighbour->is_small_pool == piece.is_small_pool && neighbour->pool == piece.pool;
  }

  absl::Status UndoUnmap(const trace::Event& event) {
    SegmentRange piece{.address = event.address,
                       .size_bytes = event.size_bytes,
                       .stream = event.stream,
                       .is_expandable = true,
                       .is_pool_known = false,
                       .pool = event.pool.value_or(PoolId{})};
    // No range of large pages has this size.
    if (rule_.large_page_bytes > 0 && event.size_bytes % rule_.large_page_bytes != 0) piece.is_small_pool = true;
    const SegmentRange* left = picture().SegmentEndingAt(piece.address);
    const bool joins_left = CanJoin(left, piece);
    if (joins_left) TakePool(*left, piece);
    const SegmentRange* right = picture().SegmentStartingAt(piece.End());
    const bool joins_right = CanJoin(right, piece);
    if (joins_right) TakePool(*right, piece);
    if (absl::Status status = picture().Map(piece, joins_left, joins_right); !status.ok()) return status;
    SegmentRange& around = *picture().SegmentAround(piece.address);
    TakePool(piece, around);
    if (!around.is_pool_known) around.is_small_pool = around.is_small_pool || piece.is_small_pool;
    return absl::OkStatus();
  }

  static void TakePool(const SegmentRange& from, SegmentRange& to) {
    if (to.is_pool_known || !from.is_pool_known) return;
    to.is_small_pool = from.is_small_pool;
    to.pool = from.pool;
    to.is_pool_known = true;
  }

  Occupancy& picture() { return undone_.picture; }

  const DeviceTrace& trace_;
  const std::vector<trace::Event>& events_;
  const BlockSizeRule& rule_;
  UndoneTrace undone_;
  std::vector<std::uint32_t> free_ids_;
  std::uint64_t roundings_too_big_ = 0;
  std::uint64_t stream_mismatches_ = 0;
};

StartState StartOf(const UndoneTrace& undone, const PlacementCounts& counts) {
  StartState start;
  start.device = undone.device;
  start.inferred_tails = counts.inferred_tails;
  start.unknown_tails = counts.unknown_tails;
  auto block = undone.picture.blocks().begin();
  for (const auto& [address, range] : undone.picture.segments()) {
    StateSegment segment = SegmentOf(range);
    for (; block != undone.picture.blocks().end() && block->first < range.End(); ++block) {
      segment.blocks.push_back(undone.blocks[block->second.id]);
    }
    start.segments.push_back(std::move(segment));
  }
  return start;
}

void AddNote(absl::string_view name, std::uint64_t count, absl::string_view message, std::vector<trace::Note>& notes) {
  if (count > 0) notes.push_back({std::string(name), std::string(message), count});
}

std::vector<trace::Note> NotesOf(const PlacementCounts& counts, const Rewinder& rewinder) {
  std::vector<trace::Note> notes;
  AddNote("unknown_tails", counts.unknown_tails,
          "blocks older than the trace whose unsplit rest never showed; taken as 0, at most 1 MiB each", notes);
  AddNote("rule_disagreements", counts.rule_disagreements + rewinder.roundings_too_big(),
          "blocks whose size is not what the recorded settings give; the recorded size is taken", notes);
  AddNote("unexplained_gaps", counts.unexplained_gaps, "allocations that do not stand at the low end of a free block",
          notes);
  AddNote("stream_mismatches", rewinder.stream_mismatches(), "events whose stream is not the stream of their segment",
          notes);
  return notes;
}

}  // namespace

StateSegment StateSegmentOf(const trace::SnapshotSegment& segment) {
  StateSegment out = SegmentOf(RangeOf(segment));
  for (const trace::SnapshotBlock& block : segment.blocks) {
    if (block.state != trace::BlockState::kFree) out.blocks.push_back(BlockOf(block));
  }
  return out;
}

absl::StatusOr<RewoundTrace> RewindTrace(const DeviceTrace& trace, const BlockSizeRule& rule) {
  ASHLAR_CHECK(rule.rounded_bytes != nullptr);
  Rewinder rewinder(trace, rule);
  absl::StatusOr<UndoneTrace> undone = rewinder.Run();
  if (!undone.ok()) return undone.status();
  const absl::StatusOr<PlacementCounts> counts = PlaceBlocks(trace.events, rule, *undone);
  if (!counts.ok()) return counts.status();
  return RewoundTrace{StartOf(*undone, *counts), std::move(undone->facts), NotesOf(*counts, rewinder)};
}

absl::StatusOr<StartState> Rewind(const DeviceTrace& trace, const BlockSizeRule& rule) {
  absl::StatusOr<RewoundTrace> rewound = RewindTrace(trace, rule);
  if (!rewound.ok()) return rewound.status();
  return std::move(rewound->start);
}

}  // namespace ashlar::timeline
