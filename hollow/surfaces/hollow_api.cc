// The functions of ashlar/hollow.h.
#include <mutex>

#include "ashlar/hollow.h"
#include "hollow/launch/made_up.h"
#include "hollow/launch/process.h"
#include "hollow/surfaces/stream_work.h"

using ashlar::hollow::Process;
using ashlar::hollow::TheProcess;

bool ashlar_hollow_set_capacity(int ordinal, uint64_t bytes) {
  Process& process = TheProcess();
  if (ordinal < 0 || ordinal >= process.settings.devices) return false;
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.devices[ordinal]->SetTotal(bytes);
  return true;
}

void ashlar_hollow_fail_call(uint64_t n) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.failures.fail_call = n;
}

void ashlar_hollow_fail_request(uint64_t n) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.failures.fail_request = n;
}

uint64_t ashlar_hollow_used(int ordinal) {
  if (ordinal < 0 || ordinal >= TheProcess().settings.devices) return 0;
  return ashlar::hollow::UsedBytes(ordinal);
}

uint64_t ashlar_hollow_real_bytes(void) { return TheProcess().settings.real_bytes; }

void ashlar_hollow_know(uint64_t address, uint64_t bytes) {
  ashlar::hollow::SettleRange(address, bytes);
  ashlar::hollow::Know(address, bytes);
}

void ashlar_hollow_forget(uint64_t address, uint64_t bytes) {
  // Of one tensor: what other ranks are still to write comes before. All that is not in use is forgotten at once,
  // without waiting for anybody: what is written to it later is known then.
  constexpr uint64_t kMostOfTensor = uint64_t{64} << 20;
  if (bytes <= kMostOfTensor) ashlar::hollow::SettleRange(address, bytes);
  ashlar::hollow::Forget(address, bytes);
}

bool ashlar_hollow_is_known(uint64_t address, uint64_t bytes) {
  ashlar::hollow::SettleRange(address, bytes);
  return ashlar::hollow::IsKnown(address, bytes);
}

void ashlar_hollow_set_line(ashlar_hollow_line line) { ashlar::hollow::SetLineTeller(line); }
