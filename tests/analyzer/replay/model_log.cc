#include "tests/analyzer/replay/model_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "tests/allocator/policy/model.h"

namespace ashlar {
namespace {

// One event a line, each run of free_completed by address.
void AppendLog(std::size_t op, std::vector<model::Event> events, std::string& log) {
  for (auto begin = events.begin(); begin != events.end(); ++begin) {
    auto end = begin;
    while (end != events.end() && end->action == trace::Action::kFreeCompleted) ++end;
    std::sort(begin, end);
  }
  for (const model::Event& event : events) {
    absl::StrAppend(&log, op, " ", trace::ActionName(event.action), " ", event.address, " ", event.size_bytes, " ",
                    event.stream);
    if (event.action == trace::Action::kAlloc) absl::StrAppend(&log, " ", event.block_size_bytes);
    log += '\n';
  }
}

void Apply(const trace::Op& request, model::Model& model, std::vector<std::uint64_t>& addresses) {
  std::uint64_t& address = addresses[request.id];
  switch (request.kind) {
    case trace::OpKind::kAlloc:
      address = model.Allocate(request.bytes, request.stream, PoolId{}).value_or(0);
      break;
    case trace::OpKind::kFree:
      if (address != 0) model.Free(address);
      address = 0;
      break;
    case trace::OpKind::kRecordStream:
      if (address != 0) model.RecordStream(address, request.stream);
      break;
    case trace::OpKind::kDeviceSync:
      model.CompleteAllWork();
      break;
    case trace::OpKind::kEmptyCache:
      model.EmptyCache();
      break;
    default:
      ASHLAR_CHECK(false);  // the model does not know this kind of request
  }
}

}  // namespace

std::string ModelLog(const replay::RequestReplayOptions& options, const trace::RequestTrace& trace) {
  const device::SimDeviceOptions& device = options.device;
  model::Model model(options.policy, {device.capacity_bytes, device.events_complete_immediately, false});
  if (options.memory_fraction) model.SetMemoryFraction(*options.memory_fraction);
  std::vector<std::uint64_t> addresses(trace.id_count + 1);
  std::string log;
  for (std::size_t op = 0; op < trace.requests.size(); ++op) {
    Apply(trace.requests[op], model, addresses);
    AppendLog(op, model.TakeEvents(), log);
  }
  return log;
}

}  // namespace ashlar
