#include "hollow/record/stacks.h"

#include <unwind.h>

#include <string_view>

#include "allocator/base/fingerprint.h"
#include "hollow/record/row.h"

namespace ashlar::record {
namespace {

constexpr std::size_t kMostNameBytes = 4000;  // of templates; a row has room for the path too

struct Walk {
  const void* caller;
  Stack* stack;
  bool is_past_ours;
};

_Unwind_Reason_Code TakeFrame(_Unwind_Context* context, void* data) {
  auto* walk = static_cast<Walk*>(data);
  const auto* address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (address == nullptr) return _URC_END_OF_STACK;
  walk->is_past_ours = walk->is_past_ours || address == walk->caller;
  if (walk->is_past_ours) walk->stack->frames[walk->stack->count++] = address;
  return walk->stack->count == Stack::kMostFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

std::uint64_t KeyOf(const Stack& stack) {
  Fingerprint out;
  for (std::size_t i = 0; i < stack.count; ++i) out.Add(reinterpret_cast<std::uint64_t>(stack.frames[i]));
  return out.value();
}

}  // namespace

Stack CaptureStack(const void* caller) {
  Stack out;
  Walk walk{caller, &out, false};
  _Unwind_Backtrace(TakeFrame, &walk);
  if (out.count == 0) out.frames[out.count++] = caller;  // the walk lost its way
  return out;
}

std::optional<std::uint64_t> Stacks::Find(const Stack& stack) const {
  const auto it = stacks_.find(KeyOf(stack));
  return it == stacks_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<const void*> Stacks::UnknownFrames(const Stack& stack) const {
  std::vector<const void*> out;
  for (std::size_t i = 0; i < stack.count; ++i) {
    if (frames_.count(stack.frames[i]) == 0) out.push_back(stack.frames[i]);
  }
  return out;
}

std::uint64_t Stacks::Add(const Stack& stack, const std::vector<const void*>& unknown,
                          const std::vector<CodeName>& names, Log& log) {
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const auto [frame, is_new] = frames_.try_emplace(unknown[i], frames_.size());
    if (!is_new) continue;
    const std::string_view function = names[i].function.empty() ? "-" : std::string_view(names[i].function);
    Row row('f');
    row.Decimal(frame->second).Hex(names[i].offset).Text(function.substr(0, kMostNameBytes)).Text(names[i].file);
    log.Append(row.Finish());
  }
  const auto [number, is_new] = stacks_.try_emplace(KeyOf(stack), stacks_.size());
  if (!is_new) return number->second;
  Row row('s');
  row.Decimal(number->second);
  for (std::size_t i = 0; i < stack.count; ++i) row.Decimal(frames_.at(stack.frames[i]));
  log.Append(row.Finish());
  return number->second;
}

}  // namespace ashlar::record
