#include "analyzer/formats/pickle/pickle.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/pickle/pickle.h"
#include "analyzer/formats/pickle/pickle_handout.h"
#include "analyzer/formats/pickle/pickle_memo.h"
#include "analyzer/formats/pickle/pickle_opcodes.h"

namespace ashlar::formats::pickle {
namespace {

// The stack machine. A step that fails records why in status_ and returns false. Stack entries below the newest
// mark belong to the list being built outside it: only the step that pops the mark may touch them (stack_.floor).
class PickleMachine {
 public:
  PickleMachine(absl::string_view bytes, const PickleLimits& limits, Document& document)
      : begin_(reinterpret_cast<const std::uint8_t*>(bytes.data())),
        at_(begin_),
        end_(begin_ + bytes.size()),
        room_(std::min(limits.max_values, std::uint64_t{1} << 31)),
        document_(document) {}

  void HandOut(absl::string_view key, ItemSink& sink) { handout_.emplace(key, sink, document_, memo_, stack_); }

  absl::Status Run() {
    if (!Header()) return status_;
    while (!stopped_) {
      op_ = at_;
      if (at_ == end_) return Truncated("the STOP opcode");
      if (!Step(*at_++)) return status_;
    }
    return absl::OkStatus();
  }

 private:
  bool Header() {
    if (end_ - at_ >= 2 && at_[0] == kProto && at_[1] >= 2 && at_[1] <= 5) return true;
    if (at_ != end_ && at_[0] != kProto) return Fail("does not start with a protocol of 2 or later");
    if (end_ - at_ < 2) return FailTruncated("the protocol number");
    return Fail(absl::StrCat("protocol ", at_[1], " is not known here (2 to 5 are)"));
  }

  // One line an opcode; longer than our functions are, as a dispatch is.
  bool Step(std::uint8_t opcode) {
    switch (opcode) {
      case kBinGet:
        return Gets() || (Skip(1) && Get(op_[1]));
      case kLongBinGet:
        return Gets() || (Skip(4) && Get(U32(op_ + 1)));
      case kBinInt1:
        return Skip(1) && Push(Kind::kInt, op_[1]);
      case kBinInt2:
        return Skip(2) && Push(Kind::kInt, Load(op_ + 1, 2));
      case kBinInt:
        return Skip(4) && PushSigned(static_cast<std::int32_t>(U32(op_ + 1)));
      case kLong1:
        return Skip(1) && Long(op_[1]);
      case kLong4:
        return Skip(4) && Long(U32(op_ + 1));
      case kIntText:
        return IntText();
      case kBinFloat:
        return Skip(8) && Push(Kind::kFloat, LoadBigEndian(op_ + 1));
      case kNone:
        return Push(Kind::kNone, 0);
      case kNewTrue:
        return Push(Kind::kBool, 1);
      case kNewFalse:
        return Push(Kind::kBool, 0);
      case kShortBinUnicode:
      case kShortBinString:
        return Skip(1) && Text(Kind::kString, op_[1]);
      case kBinUnicode:
      case kBinString:
        return Skip(4) && Text(Kind::kString, U32(op_ + 1));
      case kBinUnicode8:
        return Skip(8) && Text(Kind::kString, Load(op_ + 1, 8));
      case kShortBinBytes:
        return Skip(1) && Text(Kind::kBytes, op_[1]);
      case kBinBytes:
        return Skip(4) && Text(Kind::kBytes, U32(op_ + 1));
      case kBinBytes8:
        return Skip(8) && Text(Kind::kBytes, Load(op_ + 1, 8));
      case kMemoize:
        return Put(memo_.written());
      case kBinPut:
        return Skip(1) && Put(op_[1]);
      case kLongBinPut:
        return Skip(4) && Put(U32(op_ + 1));
      default:
        return StructureStep(opcode);
    }
  }

  bool StructureStep(std::uint8_t opcode) {
    switch (opcode) {
      case kMark:
        return Mark();
      case kEmptyDict:
        return handout_.has_value() && handout_->IsItem() ? Item() : PushContainer(Kind::kDict);
      case kEmptyList:
        return PushContainer(Kind::kList);
      case kEmptyTuple:
        return PushContainer(Kind::kTuple);
      case kEmptySet:
        return PushContainer(Kind::kSet);
      case kSetItems:
        return PopMark() && ExtendFrom(mark_, Kind::kDict);
      case kAppends:
        return TakeMark() && (Owns(mark_) ? CloseHandout() : KeepHandedOut() && ExtendFrom(mark_, Kind::kList));
      case kAddItems:
        return PopMark() && ExtendFrom(mark_, Kind::kSet);
      case kSetItem:
        return Need(3) && ExtendFrom(stack_.values.size() - 2, Kind::kDict);
      case kAppend:
        return Need(2) && (OwnsSingle() ? HandOutSingle() : ExtendFrom(stack_.values.size() - 1, Kind::kList));
      case kDict:
        return PopMark() && Collect(mark_, Kind::kDict);
      case kList:
        return PopMark() && Collect(mark_, Kind::kList);
      case kTuple:
        return PopMark() && Collect(mark_, Kind::kTuple);
      case kFrozenSet:
        return PopMark() && Collect(mark_, Kind::kSet);
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return Need(opcode - kTuple1 + 1u) && Collect(stack_.values.size() - (opcode - kTuple1 + 1u), Kind::kTuple);
      case kPop:
        return Pop();
      case kPopMark:
        return PopMark() && Drop(mark_);
      case kDup:
        return Need(1) && PushValue(stack_.values.back());
      case kProto:
        return Proto();
      case kFrame:
        return Frame();
      case kStop:
        return Stop();
      default:
        return Refuse(opcode);
    }
  }

  // --- input ---------------------------------------------------------------------------------------------------
  std::uint64_t Left() const { return static_cast<std::uint64_t>(end_ - at_); }
  std::uint64_t Offset() const { return static_cast<std::uint64_t>(op_ - begin_); }
  // `bytes` is a constant at most calls; compilers turn the loop into one load.
  static std::uint64_t Load(const std::uint8_t* at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{at[i]} << (8 * i);
    return value;
  }
  static std::uint64_t LoadBigEndian(const std::uint8_t* at) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) value = value << 8 | at[i];
    return value;
  }
  static std::uint32_t U32(const std::uint8_t* at) { return static_cast<std::uint32_t>(Load(at, 4)); }

  bool Skip(std::uint64_t bytes) {
    if (Left() < bytes) [[unlikely]]
      return PastEnd(bytes);
    at_ += bytes;
    return true;
  }

  [[gnu::noinline]] bool PastEnd(std::uint64_t bytes) {
    return FailTruncated(absl::StrCat(bytes, " bytes that byte ", Offset(), " announces"));
  }

  // --- values --------------------------------------------------------------------------------------------------
  bool PushValue(const Value& value) {
    stack_.values.push_back(value);
    return true;
  }
  bool Push(Kind kind, std::uint64_t payload) { return PushValue(Value(kind, Offset(), payload)); }
  bool PushSigned(std::int64_t value) { return Push(Kind::kInt, static_cast<std::uint64_t>(value)); }

  bool Text(Kind kind, std::uint64_t bytes) {
    const std::uint8_t* text = at_;
    if (!Skip(bytes) || !Spend(1)) return false;
    return Push(kind, document_.AddText({reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes)}));
  }

  // Two's complement, least significant byte first, any length.
  bool Long(std::uint64_t bytes) {
    const std::uint8_t* digits = at_;
    if (!Skip(bytes)) return false;
    const bool negative = bytes > 0 && (digits[bytes - 1] & 0x80) != 0;
    const std::uint8_t fill = negative ? 0xff : 0;
    const std::size_t kept = std::min<std::size_t>(bytes, 8);
    std::uint64_t value = Load(digits, kept);
    if (negative && kept < 8) value |= ~std::uint64_t{0} << (8 * kept);
    const bool extends = std::all_of(digits + kept, at_, [fill](std::uint8_t digit) { return digit == fill; });
    const bool top = (value >> 63) != 0;
    if (!extends || (negative && !top)) return Push(Kind::kBigInt, 0);
    return Push(top && !negative ? Kind::kUint : Kind::kInt, value);
  }

  // "I01\n" is True, "I00\n" False, "I123\n" a number: Python 2 writes numbers above 2^31 so in protocol 2.
  bool IntText() {
    const std::uint8_t* stop = std::find(at_, end_, '\n');
    if (stop == end_) return FailTruncated("the end of an INT line");
    const absl::string_view text(reinterpret_cast<const char*>(at_), static_cast<std::size_t>(stop - at_));
    at_ = stop + 1;
    if (text == "00" || text == "01") return Push(Kind::kBool, text == "01");
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) return Fail("INT that is not a number");
    return PushSigned(value);
  }

  // --- memo ----------------------------------------------------------------------------------------------------
  // A put costs at least one byte, so a pickler that counts up never has an index above the offset.
  bool Put(std::uint64_t index) {
    if (!Need(1)) return false;
    if (index > Offset()) [[unlikely]]
      return BadMemo(index, " is higher than any pickler writes here");
    if (!memo_.Put(index, stack_.values.back())) return true;
    if (handout_.has_value()) handout_->NotePut(index);
    return Spend(1);
  }
  // The opcode at work and what follows of its kind, as far as nothing is to be said of them: the frames of a stack are
  // a hundred of these, and most of a file. False: not even the first.
  bool Gets() {
    const std::uint8_t* at = op_;
    while (end_ - at >= 5) {
      const bool is_long = *at == kLongBinGet;
      if (!is_long && *at != kBinGet) break;
      // Without a branch, as short and long ones alternate at random.
      const std::uint32_t index = U32(at + 1) & ((std::uint32_t{0} - is_long) | 0xff);
      const Value* const value = memo_.Get(index);
      if (value == nullptr || value->kind() == Kind::kList) break;
      stack_.values.push_back(*value);
      at += 2 + 3 * static_cast<std::ptrdiff_t>(is_long);
    }
    if (at == op_) return false;
    at_ = at;
    return true;
  }
  bool Get(std::uint64_t index) {
    const Value* const value = memo_.Get(index);
    if (value == nullptr) [[unlikely]]
      return memo_.At(index) == Memo::kDropped ? ReadWhole() : BadMemo(index, " was never written");
    if (value->kind() == Kind::kList && document_.IsStreamedList(*value)) [[unlikely]]
      return ReadWhole();
    return PushValue(*value);
  }
  [[gnu::noinline]] bool BadMemo(std::uint64_t index, absl::string_view why) {
    return Fail(absl::StrCat("memo index ", index, why));
  }

  // --- stack and containers ------------------------------------------------------------------------------------
  bool Need(std::size_t count) {
    if (stack_.values.size() - stack_.floor >= count) [[likely]]
      return true;
    if (handout_.has_value() && handout_->MayMiss()) return ReadWhole();
    return Fail("takes more from the stack than there is");
  }
  bool Spend(std::uint64_t values) {
    if (values <= room_) [[likely]] {
      room_ -= values;
      return true;
    }
    status_ = absl::ResourceExhaustedError(absl::StrCat("pickle: more values than the limit at byte ", Offset()));
    return false;
  }
  bool Mark() {
    if (handout_.has_value()) handout_->BeforeMark(room_);
    stack_.marks.push_back(stack_.floor);
    stack_.floor = stack_.values.size();
    return true;
  }
  bool PopMark() { return TakeMark() && KeepHandedOut(); }
  // Takes the newest mark off; mark_ is the stack position it stood at.
  bool TakeMark() {
    if (stack_.marks.empty()) return Fail("needs a MARK that is not there");
    mark_ = stack_.floor;
    stack_.floor = stack_.marks.back();
    stack_.marks.pop_back();
    return true;
  }
  bool Pop() {
    if (stack_.values.size() == stack_.floor) return PopMark();
    stack_.values.pop_back();
    return true;
  }
  // --- items that are handed out -------------------------------------------------------------------------------
  bool Owns(std::size_t first) const { return handout_.has_value() && handout_->Owns(first); }
  bool OwnsSingle() const { return handout_.has_value() && handout_->OwnsSingle(stack_.values.size() - 1); }
  bool Item() {
    const bool is_direct = handout_->MayTakeDirectly();
    if (!handout_->IsEmpty() && (is_direct || handout_->IsFull()) && !HandOut()) return false;
    if (is_direct) {
      DirectItem item(begin_, end_, memo_);
      item.at = op_;
      const std::uint8_t* const next = handout_->TakeDirectly(item, room_);
      if (next != op_) {
        at_ = next;
        return GiveBack();
      }
    }
    return PushContainer(Kind::kDict);
  }
  bool HandOut() { return handout_->HandOut(room_) ? GiveBack() : ReadWhole(); }
  bool CloseHandout() { return handout_->Close(room_) ? GiveBack() : ReadWhole(); }
  bool HandOutSingle() { return handout_->HandOutSingle(stack_.values.size() - 1) || ReadWhole(); }
  bool KeepHandedOut() { return !handout_.has_value() || handout_->AfterOtherMark() || ReadWhole(); }
  // The input before the opcode at work is not needed for long.
  bool GiveBack() {
    if (op_ - given_back_ >= kGiveBackBytes) {
      GiveBackPages({reinterpret_cast<const char*>(given_back_), static_cast<std::size_t>(op_ - given_back_)});
      given_back_ = op_;
    }
    return true;
  }
  [[gnu::noinline]] bool ReadWhole() {
    status_ = absl::AbortedError(absl::StrCat("pickle: byte ", Offset(), " refers to what was handed out"));
    return false;
  }

  bool Drop(std::size_t size) {
    stack_.values.resize(size);
    return true;
  }
  bool PushContainer(Kind kind) { return Spend(1) && Push(kind, document_.AddContainer()); }

  // The items from stack position `first` on go into the container just below it.
  bool ExtendFrom(std::size_t first, Kind kind) {
    if (first <= stack_.floor || stack_.values[first - 1].kind() != kind) [[unlikely]]
      return NotA(kind);
    const std::size_t count = stack_.values.size() - first;
    if (kind == Kind::kDict && count % 2 != 0) return Fail("a key without a value");
    if (!Spend(count)) return false;
    if (handout_.has_value() && !handout_->MayGrow(stack_.values[first - 1].payload())) return ReadWhole();
    document_.Extend(stack_.values[first - 1].payload(), stack_.values.data() + first,
                     stack_.values.data() + stack_.values.size());
    return Drop(first);
  }

  [[gnu::noinline]] bool NotA(Kind kind) {
    if (handout_.has_value() && handout_->MayMiss()) return ReadWhole();
    return Fail(absl::StrCat("adds items to something that is not ", KindName(kind)));
  }

  // The items from stack position `first` on become a container of their own.
  bool Collect(std::size_t first, Kind kind) {
    const std::size_t count = stack_.values.size() - first;
    if (kind == Kind::kDict && count % 2 != 0) return Fail("a key without a value");
    if (!Spend(count + 1)) return false;
    const std::uint64_t container = document_.AddContainer();
    document_.Extend(container, stack_.values.data() + first, stack_.values.data() + stack_.values.size());
    return Drop(first) && Push(kind, container);
  }

  // --- the rest ------------------------------------------------------------------------------------------------
  bool Proto() {
    if (!Skip(1)) return false;
    if (op_[1] >= 2 && op_[1] <= 5) return true;
    return Fail(absl::StrCat("protocol ", op_[1], " is not known here (2 to 5 are)"));
  }
  bool Frame() {
    if (!Skip(8)) return false;
    const std::uint64_t bytes = Load(op_ + 1, 8);
    if (bytes <= Left()) return true;
    return FailTruncated(absl::StrCat("the frame of ", bytes, " bytes that byte ", Offset(), " announces"));
  }
  bool Stop() {
    if (!Need(1)) return false;
    stopped_ = true;
    document_.Finish(stack_.values.back(), Left());
    return true;
  }

  bool Refuse(std::uint8_t opcode) {
    if (const absl::string_view name = CodeRunningOpcodeName(opcode); !name.empty()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("this pickle wants to run code (", name, " at byte ", Offset(), "): not a memory snapshot"));
      return false;
    }
    if (const absl::string_view name = UnsupportedOpcodeName(opcode); !name.empty()) {
      return Fail(absl::StrCat(name, " is not used by memory snapshots; write the file with protocol 2 to 5"));
    }
    return Fail(absl::StrFormat("0x%02x is no opcode: not a pickle, or damaged", opcode));
  }

  [[gnu::noinline]] bool Fail(absl::string_view what) {
    op_ = op_ == nullptr ? at_ : op_;
    status_ = absl::InvalidArgumentError(absl::StrCat("pickle: byte ", Offset(), ": ", what));
    return false;
  }
  bool FailTruncated(absl::string_view missing) {
    status_ = Truncated(missing);
    return false;
  }
  absl::Status Truncated(absl::string_view missing) const {
    return absl::DataLossError(
        absl::StrCat("pickle: the input ends at byte ", end_ - begin_, " before ", missing, ": the file is truncated"));
  }

  static constexpr std::ptrdiff_t kGiveBackBytes = 4 << 20;

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  const std::uint8_t* op_ = nullptr;  // the opcode at work
  const std::uint8_t* given_back_ = begin_;
  std::uint64_t room_;
  MachineStack stack_;
  std::size_t mark_ = 0;
  Memo memo_;
  Document& document_;
  std::optional<Handout> handout_;
  absl::Status status_;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<Document> Read(absl::string_view bytes, const PickleLimits& limits) {
  Document document;
  document.Reserve(bytes.size());
  if (absl::Status status = PickleMachine(bytes, limits, document).Run(); !status.ok()) return status;
  return document;
}

absl::Status ReadStreamed(absl::string_view bytes, const PickleLimits& limits, absl::string_view key, ItemSink& sink,
                          Document& document) {
  PickleMachine machine(bytes, limits, document);
  machine.HandOut(key, sink);
  return machine.Run();
}

}  // namespace ashlar::formats::pickle
