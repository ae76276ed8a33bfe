#include "analyzer/readers/torch/torch_entry_opcodes.h"

#include <algorithm>
#include <utility>

#include "analyzer/readers/pickle/pickle_opcodes.h"
#include "analyzer/readers/torch/torch_record.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

using pickle::DirectItem;
using pickle::Kind;
using pickle::Value;
using trace::Action;

// What each entry has that says where and how much.
constexpr std::uint64_t kPlace = FieldSet({Field::kAction, Field::kAddr, Field::kSize, Field::kStream});

bool IsOfABlockOrSegment(Action action) { return action < Action::kOom; }

}  // namespace

bool EntryOpcodes::Decode(DirectItem& item) {
  if (!item.HasRoom()) return false;
  ++item.at;
  if (!item.Remember(Kind::kDict, item.begin) || *item.at++ != pickle::kMark) return false;
  event_ = {};
  event_.file_byte = static_cast<std::uint32_t>(std::min<std::uint64_t>(item.OffsetOf(item.begin), trace::kNoByte));
  seen_ = 0;
  label_ = {};
  is_new_stack_ = false;
  while (item.PassFrame() && item.HasRoom()) {
    if (*item.at == pickle::kSetItems) {
      ++item.at;
      return (seen_ & kPlace) == kPlace;
    }
    const Value* const key = item.Get();
    if (key == nullptr || !item.PassFrame() || !item.HasRoom()) return false;
    const Field field = context_.names.Of(*key);
    if (Has(field) || !DecodeValue(field, item)) return false;
    seen_ |= std::uint64_t{1} << static_cast<unsigned>(field);
  }
  return false;
}

bool EntryOpcodes::DecodeValue(Field field, DirectItem& item) {
  std::int64_t number = 0;
  switch (field) {
    case Field::kAction:
      return DecodeAction(item);
    case Field::kAddr:
      if (!item.Integer(&number)) return false;
      event_.address = static_cast<std::uint64_t>(number);
      return number >= 0;
    case Field::kSize:
      if (!item.Integer(&number)) return false;
      event_.size_bytes = static_cast<std::uint64_t>(number);
      return number >= 0;
    case Field::kStream:
      if (!item.Integer(&number)) return false;
      event_.stream = Stream{static_cast<std::uint64_t>(number)};
      return true;
    case Field::kTimeUs:
      return item.Integer(&event_.time_us);
    case Field::kUserMetadata:
      return DecodeText(item, &label_[0]);
    case Field::kInternalMetadata:
      return DecodeText(item, &label_[1]);
    case Field::kCompileContext:
      return DecodeText(item, &label_[2]);
    case Field::kPoolId:
      return DecodePool(item);
    case Field::kFrames:
      return DecodeFrames(item);
    default:
      return false;
  }
}

bool EntryOpcodes::DecodeAction(DirectItem& item) {
  const Value* const value = item.Get();
  if (value == nullptr || value->kind() != Kind::kString) return false;
  event_.action = trace::ParseAction(context_.document.Text(*value)).value_or(Action::kUnknown);
  return IsOfABlockOrSegment(event_.action);
}

bool EntryOpcodes::DecodeText(DirectItem& item, absl::string_view* out) {
  const std::uint8_t* const begin = item.at;
  if (*begin != pickle::kShortBinUnicode && *begin != pickle::kBinUnicode) {
    const Value* const value = item.Get();
    if (value == nullptr || value->kind() != Kind::kString) return false;
    *out = context_.document.Text(*value);
    return true;
  }
  const bool is_short = *begin == pickle::kShortBinUnicode;
  const std::size_t bytes = is_short ? begin[1] : DirectItem::U32(begin + 1);
  item.at += is_short ? 2 : 5;
  if (!item.HasRoom(static_cast<std::ptrdiff_t>(bytes) + DirectItem::kOpcodeBytes)) return false;
  *out = {reinterpret_cast<const char*>(item.at), bytes};
  item.at += bytes;
  return item.Remember(Kind::kString, begin, *out);
}

// A pair of numbers, one of them 0 and the other small: any such id has a place in an event.
bool EntryOpcodes::DecodePool(DirectItem& item) {
  constexpr std::int64_t kSmall = 1 << 16;
  const std::uint8_t* const begin = item.at;
  std::int64_t first = 0, second = 0;
  if (!item.Integer(&first) || !item.HasRoom() || !item.Integer(&second) || !item.HasRoom()) return false;
  if (*item.at++ != pickle::kTuple2 || !item.Remember(Kind::kTuple, begin)) return false;
  const bool is_plain = first >= 0 && second >= 0 && first < kSmall && second < kSmall && (first == 0 || second == 0);
  if (is_plain) event_.pool = PoolId{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)};
  return is_plain;
}

bool EntryOpcodes::DecodeFrames(DirectItem& item) {
  const std::uint8_t* const begin = item.at;
  if (*begin != pickle::kEmptyList) {
    const Value* const list = item.Get();
    if (list == nullptr || list->kind() != Kind::kList) return false;
    return IsThere(*list) && context_.stacks.Read(*list, &event_.stack).ok();
  }
  ++item.at;
  if (!item.Remember(Kind::kList, begin) || !item.HasRoom()) return false;
  if (*item.at == pickle::kMark) return DecodeRun(item);
  // A key follows a list without frames: one frame alone is left to the machine.
  return true;
}

// What blocks have in common with entries is in the document, and known once it was read; what an entry had, is known.
bool EntryOpcodes::IsThere(const Value& container) const {
  return context_.stacks.Known(container.payload()) != 0 || !context_.document.IsGone(container);
}

// MARK, gets, APPENDS.
bool EntryOpcodes::DecodeRun(DirectItem& item) {
  ++item.at;
  if (runs_overwritten_ != item.memo.overwritten()) runs_.Clear();
  runs_overwritten_ = item.memo.overwritten();
  if (const StackRuns::Run* const run = runs_.Find(item.at, item.end); run != nullptr) {
    item.at += run->size;
    event_.stack = run->stack;
    return true;
  }
  run_ = item.at;
  frames_.clear();
  while (true) {
    if (!item.PassFrame() || !item.HasRoom()) return false;
    if (*item.at == pickle::kAppends) break;
    if (!DecodeFrame(item)) return false;
  }
  ++item.at;
  run_bytes_ = static_cast<std::size_t>(item.at - run_);
  is_new_stack_ = !frames_.empty();
  return true;
}

bool EntryOpcodes::DecodeFrame(DirectItem& item) {
  const Value* const frame = item.Get();
  if (frame == nullptr || frame->kind() != Kind::kDict) return false;
  return IsThere(*frame) && context_.stacks.ReadOne(*frame, &frames_.emplace_back()).ok();
}

const trace::Event& EntryOpcodes::Finish() {
  if (is_new_stack_) {
    event_.stack = context_.snapshot.stacks.InternStack(frames_);
    runs_.Add(run_, run_bytes_, event_.stack);
  }
  FinishLabel();
  trace::Traits& traits = context_.snapshot.traits;
  traits.has_time |= Has(Field::kTimeUs);
  traits.has_stacks |= event_.stack != trace::kNoStack;
  traits.has_pool_ids |= event_.pool.has_value();
  return event_;
}

void EntryOpcodes::FinishLabel() {
  if (!Has(Field::kCompileContext) && !Has(Field::kUserMetadata) && !Has(Field::kInternalMetadata)) return;
  context_.seen.has_compile_context |= Has(Field::kCompileContext);
  context_.snapshot.traits.has_labels |= Has(Field::kUserMetadata);
  if (!std::equal(label_.begin(), label_.end(), last_label_texts_.begin())) {
    for (std::size_t i = 0; i < label_.size(); ++i) last_label_texts_[i].assign(label_[i].data(), label_[i].size());
    last_label_ = InternLabel({.user_metadata = ToUtf8(label_[0]),
                               .internal_metadata = ToUtf8(label_[1]),
                               .compile_context = ToUtf8(label_[2])},
                              &context_);
  }
  event_.label = last_label_;
}

}  // namespace ashlar::readers
