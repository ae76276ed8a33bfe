#include "analyzer/exports/rmm_export.h"

#include <cstdint>

#include "analyzer/exports/block_of_event.h"
#include "analyzer/exports/event_clock.h"
#include "analyzer/readers/rmm/rmm_log_writer.h"

namespace ashlar::exports {
namespace {

using readers::RmmAction;

}  // namespace

std::vector<trace::Note> WriteRmmLog(const ExportedRun& run, ByteSink& out) {
  const timeline::Timeline& timeline = run.traced.timeline;
  const EventClock clock(timeline.events());
  readers::RmmLogWriter log(out);
  std::uint64_t older = 0, others = 0;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (block.alloc_event != timeline::kBeforeWindow) break;
    // One that was freed before the window, and waits for work, is no request of it.
    if (block.free_requested_event == timeline::kBeforeWindow) continue;
    ++older;
    log.Write({RmmAction::kAllocate, block.address, block.AskedBytes(), block.stream,
               clock.MicrosOf(timeline::kBeforeWindow)});
  }
  BlockOfEvent blocks(timeline);
  for (timeline::EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const timeline::BlockSpan* const block = blocks.Next(event);
    if (event.action == trace::Action::kAlloc && block != nullptr) {
      log.Write({RmmAction::kAllocate, block->address, block->AskedBytes(), block->stream, clock.MicrosOf(i)});
    } else if (event.action == trace::Action::kFreeRequested && block != nullptr) {
      log.Write({RmmAction::kFree, block->address, block->AskedBytes(), block->stream, clock.MicrosOf(i)});
    } else if (event.action == trace::Action::kOom) {
      log.Write({RmmAction::kAllocateFailure, 0, event.size_bytes, event.stream, clock.MicrosOf(i)});
    } else if (event.action != trace::Action::kFreeCompleted) {
      ++others;
    }
  }
  return {{"rmm_older_blocks", "requests for blocks older than the trace, written first", older},
          {"rmm_events", "events that are no request (segments, marks)", others},
          {"rmm_time", "times: events are written one microsecond apart", clock.has_time() ? 0u : 1u},
          {"rmm_stacks", "call stacks", run.traced.stacks.stack_count()}};
}

}  // namespace ashlar::exports
