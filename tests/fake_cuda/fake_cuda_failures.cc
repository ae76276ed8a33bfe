// The test's side of the fake: calls that fail, and devices that are reset.
#include <optional>

#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::device {

void FakeCuda::FailCall(std::uint64_t n, int code) {
  fail_at_ = calls_ + n;
  fail_code_ = code;
  fails_for_good_ = false;
  has_failed_ = false;
}

void FakeCuda::FailWork(std::uint64_t n, int code) {
  StopFailing();
  fail_in_work_ = n;
  fail_code_ = code;
  has_failed_ = false;
}

void FakeCuda::FailFrom(std::uint64_t n, int code) {
  FailCall(n, code);
  fails_for_good_ = true;
}

void FakeCuda::StopFailing() {
  fail_at_.reset();
  fail_in_work_.reset();
  fails_for_good_ = false;
}

std::uint64_t FakeCuda::calls_of(const std::string& name) const {
  const auto it = call_counts_.find(name);
  return it == call_counts_.end() ? 0 : it->second;
}

std::optional<int> FakeCuda::Fails(const char* call) {
  const std::uint64_t index = calls_++;
  ++call_counts_[call];
  const std::string name = call;
  const bool is_work = name != "cuCtxGetCurrent" && name != "cuCtxGetId" && name != "cuDevicePrimaryCtxGetState" &&
                       name != "cuThreadExchangeStreamCaptureMode";
  if (fail_in_work_.has_value() && is_work && (*fail_in_work_)-- == 0) {
    fail_at_ = index;
    fail_in_work_.reset();
  }
  if (!fail_at_.has_value() || index < *fail_at_ || (index > *fail_at_ && !fails_for_good_)) return std::nullopt;
  if (!has_failed_) failed_call_ = call;
  has_failed_ = true;
  return fail_code_;
}

void FakeCuda::ResetDevice(int ordinal, bool is_remade) {
  std::erase_if(segments_, [&](const auto& segment) { return segment.second.ordinal == ordinal; });
  std::erase_if(events_, [&](const auto& event) { return event.second.ordinal == ordinal; });
  std::erase_if(mappings_, [&](const auto& mapping) { return memory_.at(mapping.second.handle).ordinal == ordinal; });
  std::erase_if(memory_, [&](const auto& memory) { return memory.second.ordinal == ordinal; });
  std::erase_if(reservations_, [&](const auto& range) {
    const auto mapping = mappings_.lower_bound(range.first);
    return mapping == mappings_.end() || mapping->first >= range.first + range.second;
  });
  At(ordinal) = {0, 0, is_remade ? next_id_++ : 0};
}

}  // namespace ashlar::device
