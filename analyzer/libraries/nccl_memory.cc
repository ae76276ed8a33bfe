#include "analyzer/libraries/nccl_memory.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"

namespace ashlar::libraries {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;  // of cuMemCreate
constexpr std::uint64_t kLowLatencyBytes = 8 * 512 * 8 * 16;
constexpr std::uint64_t kLowLatency128Bytes = 120 * 640 * 8 * 8;
constexpr std::uint64_t kSimpleBytes = 4 * kMiB;
constexpr std::uint64_t kLeastChannels = 2, kMostChannels = 32;
constexpr std::uint64_t kMostReceived = 3;            // ranks that a rank receives from in rings and trees
constexpr std::uint64_t kOneRankBytes = 388 * kMiB;   // the second communicator of the measurement
constexpr std::uint64_t kKernelBytes = 170 * kMiB;    // what the first one took beside that
constexpr std::uint64_t kMulticastUnit = 512 * kMiB;  // its recommended granularity on an H100
constexpr int kLastWithLargeMulticast = 22'099;       // 2.20
constexpr std::size_t kMostToldCommunicators = 4;

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

class NcclSettings {
 public:
  explicit NcclSettings(const NcclUse& use) : values_(use.settings) {}

  // As given, where it is a whole number from 0 on.
  std::uint64_t Get(const char* name, std::uint64_t otherwise) const {
    const auto found = values_.find(name);
    std::uint64_t value = 0;
    return found != values_.end() && absl::SimpleAtoi(found->second, &value) ? value : otherwise;
  }

 private:
  const std::map<std::string, std::string>& values_;
};

struct Span {
  std::uint64_t least, most;
};

Span ChannelsOf(const NcclSettings& settings) {
  const std::uint64_t least = settings.Get("NCCL_MIN_NCHANNELS", settings.Get("NCCL_MIN_CTAS", kLeastChannels));
  const std::uint64_t most = settings.Get("NCCL_MAX_NCHANNELS", settings.Get("NCCL_MAX_CTAS", kMostChannels));
  return {std::min(least, most), std::max(least, most)};
}

Span ChannelsOfPeer(const NcclSettings& settings) {
  const std::uint64_t given = settings.Get("NCCL_NCHANNELS_PER_PEER", 0);
  if (given > 0) return {given, given};
  const std::uint64_t least = settings.Get("NCCL_MIN_P2P_NCHANNELS", 1);
  const std::uint64_t most = settings.Get("NCCL_MAX_P2P_NCHANNELS", kMostChannels);
  return {std::min(least, most), std::max(least, most)};
}

std::uint64_t ReceiveBytes(const NcclSettings& settings) {
  const std::uint64_t simple = settings.Get("NCCL_BUFFSIZE", kSimpleBytes);
  return RoundUp(settings.Get("NCCL_LL_BUFFSIZE", kLowLatencyBytes) +
                     settings.Get("NCCL_LL128_BUFFSIZE", kLowLatency128Bytes) + simple + 1,  // and a head
                 kPage);
}

// V100, A100 and the cards of their kind from Hopper on are made with NVLink.
bool HasLinks(gpus::Capability of) {
  return of == gpus::Capability{7, 0} || of == gpus::Capability{8, 0} || of.major == 9 || of.major == 10;
}

BytesBetween ConnectionBytes(const NcclSettings& settings, gpus::Capability capability) {
  const std::uint64_t bytes = ReceiveBytes(settings) + kPage;
  const bool is_sure = HasLinks(capability) && settings.Get("NCCL_P2P_DISABLE", 0) == 0;
  return {is_sure ? bytes : 0, bytes + 2 * kPage};
}

std::uint64_t MulticastBytes(const NcclUse& use, const NcclSettings& settings, int ranks) {
  const bool is_large = use.version > 0 && use.version <= kLastWithLargeMulticast;
  const std::uint64_t channels = settings.Get("NCCL_NVLS_NCHANNELS", is_large ? kMostChannels / 2 : kMostChannels);
  const std::uint64_t buffer = is_large ? settings.Get("NCCL_BUFFSIZE", kSimpleBytes) + kPage : kMiB;
  return RoundUp(static_cast<std::uint64_t>(ranks) * channels * 2 * buffer, kMulticastUnit);
}

BytesBetween CommunicatorBytes(const NcclUse& use, const CommunicatorUse& of, gpus::Capability capability) {
  const NcclSettings settings(use);
  const BytesBetween connection = ConnectionBytes(settings, capability);
  BytesBetween out{0, kOneRankBytes};
  if (of.has_collectives && of.ranks > 1) {
    const Span channels = ChannelsOf(settings);
    const std::uint64_t received = of.ranks == 2 ? 1 : kMostReceived;
    if (!of.is_suspended) {
      out.Add({channels.least * connection.least_bytes, channels.most * received * connection.most_bytes});
    }
    const bool has_multicast = capability.major >= 9 && of.ranks > 2 && settings.Get("NCCL_NVLS_ENABLE", 2) != 0;
    if (has_multicast) out.most_bytes += MulticastBytes(use, settings, of.ranks);
  }
  if (of.is_suspended) return out;
  const Span channels = ChannelsOfPeer(settings);
  const auto peers = static_cast<std::uint64_t>(std::max(of.peers, 0));
  out.Add({peers * channels.least * connection.least_bytes, peers * channels.most * connection.most_bytes});
  return out;
}

std::string TextOf(const CommunicatorUse& of) {
  return absl::StrCat(of.ranks, of.ranks == 1 ? " rank" : " ranks", of.has_collectives ? ", collectives" : "",
                      of.peers > 0 ? absl::StrCat(", ", of.peers, of.peers == 1 ? " peer" : " peers") : "",
                      of.is_suspended ? ", suspended" : "");
}

}  // namespace

BytesBetween NcclBytes(const NcclUse& use, gpus::Capability capability) {
  if (use.communicators.empty()) return {};
  BytesBetween out{0, kKernelBytes};
  for (const CommunicatorUse& of : use.communicators) out.Add(CommunicatorBytes(use, of, capability));
  return out;
}

std::string NcclSource(const NcclUse& use) {
  std::vector<std::string> told;
  for (const CommunicatorUse& of : use.communicators) {
    if (told.size() == kMostToldCommunicators) break;
    told.push_back(TextOf(of));
  }
  const std::size_t count = use.communicators.size();
  if (count > told.size()) told.push_back(absl::StrCat(count - told.size(), " more"));
  const NcclSettings settings(use);
  const Span channels = ChannelsOf(settings);
  return absl::StrCat("its rules for ", count, count == 1 ? " communicator (" : " communicators (",
                      absl::StrJoin(told, "; "), "), ", channels.least, " to ", channels.most, " channels, ",
                      FormatBytes(ReceiveBytes(settings) + kPage),
                      " a connection; channels go by links that are not here");
}

}  // namespace ashlar::libraries
