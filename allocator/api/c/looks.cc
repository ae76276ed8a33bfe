#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "allocator/api/c/handle.h"
#include "ashlar/events.h"
#include "ashlar/snapshot.h"

namespace ashlar::c {
namespace {

static_assert(static_cast<int>(BlockState::kFree) == ASHLAR_BLOCK_FREE &&
              static_cast<int>(BlockState::kLive) == ASHLAR_BLOCK_LIVE &&
              static_cast<int>(BlockState::kPending) == ASHLAR_BLOCK_PENDING);
static_assert(static_cast<int>(EventKind::kAlloc) == ASHLAR_EVENT_ALLOC &&
              static_cast<int>(EventKind::kOutOfMemory) == ASHLAR_EVENT_OUT_OF_MEMORY &&
              static_cast<int>(EventKind::kPagesWoken) == ASHLAR_EVENT_PAGES_WOKEN);

std::vector<ashlar_segment_block> BlocksOf(const SegmentInfo& segment) {
  std::vector<ashlar_segment_block> out;
  out.reserve(segment.blocks.size());
  for (const BlockInfo& block : segment.blocks) {
    out.push_back({.address = PointerOf(block.address),
                   .size_bytes = block.size_bytes,
                   .requested_bytes = block.requested_bytes,
                   .state = static_cast<std::int32_t>(block.state)});
  }
  return out;
}

void Show(const SegmentInfo& segment, ashlar_visit_segment visit, void* context) {
  const std::vector<ashlar_segment_block> blocks = BlocksOf(segment);
  const ashlar_segment shown = {.address = PointerOf(segment.address),
                                .size_bytes = segment.size_bytes,
                                .stream = PointerOf(segment.stream),
                                .pool = {segment.pool.first, segment.pool.second},
                                .is_small_pool = segment.is_small_pool ? 1 : 0,
                                .is_expandable = segment.is_expandable ? 1 : 0,
                                .blocks = blocks.data(),
                                .block_count = blocks.size()};
  visit(context, &shown);
}

EventObserver ObserverOf(ashlar_observer observer, void* context) {
  if (observer == nullptr) return {};
  return [observer, context](const AllocatorEvent& event) {
    const ashlar_event told = {.struct_size = sizeof(ashlar_event),
                               .kind = static_cast<std::int32_t>(event.kind),
                               .address = event.address,
                               .size_bytes = event.size_bytes,
                               .stream = PointerOf(event.stream),
                               .pool = {event.pool.first, event.pool.second}};
    observer(context, &told);
  };
}

}  // namespace
}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_visit_segments(const ashlar_allocator* allocator, ashlar_visit_segment visit, void* context) {
  return ashlar::c::Call([&] {
    for (const ashlar::SegmentInfo& segment : allocator->allocator.Segments()) ashlar::c::Show(segment, visit, context);
    return absl::OkStatus();
  });
}

ashlar_status ashlar_observe(ashlar_allocator* allocator, ashlar_observer observer, void* context) {
  return ashlar::c::Call([&] {
    allocator->allocator.SetObserver(ashlar::c::ObserverOf(observer, context));
    return absl::OkStatus();
  });
}

}  // extern "C"
