#include "launcher/device_account.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/libraries/library_memory.h"
#include "analyzer/libraries/owners.h"

namespace ashlar::cli {
namespace {

using libraries::MemoryPart;

// What a process has on one device.
struct Share {
  const ProcessRun* run;
  const AccountedDevice* device;
};

std::map<int, std::vector<Share>> SharesOf(const RunResults& results) {
  std::map<int, std::vector<Share>> out;
  for (const ProcessRun& run : results.runs) {
    if (!run.books.has_value()) continue;
    for (const AccountedDevice& device : run.books->devices) {
      if (device.peak_bytes > 0) out[device.ordinal].push_back({&run, &device});
    }
  }
  return out;
}

libraries::UsedLibraries UseOf(const Share& share) {
  const LibraryCalls& calls = share.run->books->library_calls;
  libraries::UsedLibraries out{
      .has_cudnn = calls.has_cudnn, .cudnn = calls.cudnn, .has_torch = share.run->torch.has_value()};
  out.nccl.version = calls.nccl_version;
  out.nccl.settings = calls.nccl_settings;
  for (const CublasHandles& of : calls.cublas) {
    if (of.device == share.device->ordinal) out.cublas_handles += of.handles;
  }
  for (const DeviceCommunicator& of : calls.communicators) {
    if (of.device == share.device->ordinal) out.nccl.communicators.push_back(of.communicator);
  }
  return out;
}

// Adds to the part of that name, of several processes on a device.
void AddPart(AccountPart part, std::vector<AccountPart>& parts) {
  const auto same = std::find_if(parts.begin(), parts.end(), [&part](const AccountPart& of) {
    return of.name == part.name && of.is_in_peak == part.is_in_peak;
  });
  if (same == parts.end()) return parts.push_back(std::move(part));
  same->bytes.Add(part.bytes);
}

void AddSeen(const Share& share, const HollowMachine& machine, std::vector<AccountPart>& parts) {
  for (const LibraryBytes& of : share.device->libraries) {
    AddPart({libraries::OwnerOf(of.name), {of.bytes, of.bytes}, true, libraries::kMeasured, "as it asked the device"},
            parts);
  }
  const std::uint64_t context = share.device->context_bytes;
  AddPart({"CUDA context", {context, context}, true, machine.context.mark, machine.context.source}, parts);
}

void AddInUse(const MachineValue& in_use, DeviceAccount& account) {
  if (in_use.bytes == 0) return;
  account.peak_bytes += in_use.bytes;
  account.parts.push_back(
      {"in use beside the program", {in_use.bytes, in_use.bytes}, true, in_use.mark, in_use.source});
}

AccountPart OnHost(std::uint64_t bytes) {
  return {"the program on the host", {bytes, bytes}, false, libraries::kMeasured, "resident memory of this run"};
}

DeviceAccount AccountOfDevice(int ordinal, const std::vector<Share>& shares, const HollowMachine& machine) {
  DeviceAccount out{.ordinal = ordinal, .parts = {}};
  for (const Share& share : shares) {
    out.peak_bytes = std::max(out.peak_bytes, share.device->peak_bytes);
    AddSeen(share, machine, out.parts);
    for (MemoryPart& part : libraries::LibraryParts(UseOf(share), machine.ran_as.capability)) {
      AddPart({std::move(part.name), part.bytes, false, std::move(part.mark), std::move(part.source)}, out.parts);
    }
  }
  std::stable_sort(out.parts.begin(), out.parts.end(), [](const AccountPart& a, const AccountPart& b) {
    return a.is_in_peak != b.is_in_peak ? a.is_in_peak : a.bytes.most_bytes > b.bytes.most_bytes;
  });
  return out;
}

}  // namespace

libraries::BytesBetween DeviceAccount::Beside() const {
  libraries::BytesBetween out;
  for (const AccountPart& part : parts) {
    if (!part.is_in_peak) out.Add(part.bytes);
  }
  return out;
}

std::optional<DeviceAccount> AccountOf(const RunResults& results, const HollowMachine& machine,
                                       std::uint64_t host_bytes) {
  std::optional<DeviceAccount> out;
  std::uint64_t most = 0;
  for (const auto& [ordinal, shares] : SharesOf(results)) {
    DeviceAccount account = AccountOfDevice(ordinal, shares, machine);
    AddInUse(machine.in_use, account);
    if (machine.has_unified_memory) account.parts.push_back(OnHost(host_bytes * shares.size()));
    const std::uint64_t bytes = account.peak_bytes + account.Beside().most_bytes;
    if (bytes <= most) continue;
    most = bytes;
    out = std::move(account);
  }
  return out;
}

std::optional<Condition> ConditionOf(const DeviceAccount& account, const HollowMachine& machine) {
  const std::uint64_t spare = machine.total.bytes - std::min(machine.total.bytes, account.peak_bytes);
  const std::uint64_t beside = account.Beside().most_bytes;
  if (beside <= spare) {
    if (!machine.has_unified_memory) return std::nullopt;
    return Condition{"the host's other programs and its page cache", spare - beside};
  }
  const auto largest = std::max_element(account.parts.begin(), account.parts.end(), [](const auto& a, const auto& b) {
    return (a.is_in_peak ? 0 : a.bytes.most_bytes) < (b.is_in_peak ? 0 : b.bytes.most_bytes);
  });
  const std::uint64_t others = beside - largest->bytes.most_bytes;
  if (largest->name != "NCCL" || others >= spare) return Condition{"libraries", spare};
  return Condition{largest->name, spare - others};
}

}  // namespace ashlar::cli
