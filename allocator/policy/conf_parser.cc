// The grammar of PYTORCH_CUDA_ALLOC_CONF: key:value pairs with commas between, blanks ignored, a trailing comma fine;
// a value may be a list [k:v,...]. Each key is one row of a table: from which version on, and how it is read.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/policy/options.h"

namespace ashlar::policy {
namespace {

struct Setting {
  std::string key;
  std::string value;
};

absl::Status Bad(const Setting& setting, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(setting.key, ": '", setting.value, "' is not allowed: ", allowed));
}

// Splits at commas outside brackets, then at the first colon.
absl::StatusOr<std::vector<Setting>> SplitConf(absl::string_view conf) {
  std::string text;
  for (const char c : conf) {
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) text.push_back(c);
  }
  std::vector<Setting> settings;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[') ++depth;
      if (text[i] == ']') --depth;
      if (text[i] != ',' || depth > 0) continue;
    }
    const std::string item = text.substr(begin, i - begin);
    begin = i + 1;
    if (item.empty()) continue;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' in '", conf, "' is no setting: write key:value, with commas between settings"));
    }
    settings.push_back({item.substr(0, colon), item.substr(colon + 1)});
  }
  if (depth != 0) return absl::InvalidArgumentError(absl::StrCat("'", conf, "' has a bracket without its partner"));
  return settings;
}

absl::StatusOr<std::uint64_t> ReadMebibytes(const Setting& setting, std::uint64_t low_mb, bool inclusive) {
  std::uint64_t value = 0;
  const std::string allowed = absl::StrCat("use a whole number of MiB ", inclusive ? ">= " : "> ", low_mb);
  if (!absl::SimpleAtoi(setting.value, &value)) return Bad(setting, allowed);
  if (value < low_mb || (!inclusive && value == low_mb)) return Bad(setting, allowed);
  return std::min(value, kUnlimited / kMiB) * kMiB;
}

absl::StatusOr<double> ReadNumber(const Setting& setting, absl::string_view allowed) {
  double value = 0;
  if (!absl::SimpleAtod(setting.value, &value) || !std::isfinite(value)) return Bad(setting, allowed);
  return value;
}

absl::StatusOr<bool> ReadBool(const Setting& setting) {
  if (setting.value == "True") return true;
  if (setting.value == "False") return false;
  return Bad(setting, "use True or False");
}

bool IsLate(Compat compat) { return compat == Compat::kTorch210 || compat == Compat::kTorchLatest; }

// `[k:v,...,>:v]`; see Options::roundup_power2_divisions.
absl::Status ReadDivisionsList(const Setting& setting, Options& options) {
  constexpr absl::string_view kAllowed =
      "use [size:divisions,...,>:divisions], sizes in MiB and powers of two, divisions powers of two or 0";
  absl::string_view list = setting.value;
  if (!absl::ConsumePrefix(&list, "[") || !absl::ConsumeSuffix(&list, "]")) return Bad(setting, kAllowed);
  auto& divisions = options.roundup_power2_divisions;
  std::size_t last = 0;
  bool is_first = true;
  for (const absl::string_view item : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> pair = absl::StrSplit(item, ':');
    std::uint64_t value = 0;
    if (pair.size() != 2 || !absl::SimpleAtoi(pair[1], &value)) return Bad(setting, kAllowed);
    if (value != 0 && !std::has_single_bit(value)) return Bad(setting, kAllowed);
    if (pair[0] == ">") {
      // Until 2.6 the last named interval takes the value too; see the upstream defects in docs/policy.md.
      const std::size_t from = IsLate(options.compat) ? last + 1 : last;
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(std::min(from, divisions.size())), divisions.end(),
                value);
      continue;
    }
    std::uint64_t boundary = 0;
    if (!absl::SimpleAtoi(pair[0], &boundary) || !std::has_single_bit(boundary)) return Bad(setting, kAllowed);
    last = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(boundary)), divisions.size() - 1);
    if (is_first) std::fill(divisions.begin(), divisions.begin() + static_cast<std::ptrdiff_t>(last), value);
    is_first = false;
    divisions[last] = value;
  }
  return absl::OkStatus();
}

absl::Status ReadDivisions(const Setting& setting, Options& options) {
  if (absl::StartsWith(setting.value, "[")) {
    if (options.compat == Compat::kTorch113) return Bad(setting, "torch-1.13 knows one power of two for all sizes");
    return ReadDivisionsList(setting, options);
  }
  std::uint64_t value = 0;
  if (!absl::SimpleAtoi(setting.value, &value) || !std::has_single_bit(value)) {
    return Bad(setting, "use a power of two");
  }
  options.roundup_power2_divisions.fill(value);
  return absl::OkStatus();
}

absl::Status ReadLargeSegment(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, 10, false);
  if (!bytes.ok()) return bytes.status();
  options.large_segment_bytes = *bytes;
  options.max_non_split_rounding_bytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadSplitLimit(const Setting& setting, const Options& options, std::uint64_t& out) {
  const bool late = IsLate(options.compat);
  const absl::StatusOr<std::uint64_t> bytes =
      ReadMebibytes(setting, late ? options.large_segment_bytes / kMiB : 20, late);
  if (!bytes.ok()) return bytes.status();
  out = *bytes;
  return absl::OkStatus();
}

absl::Status ReadThreshold(const Setting& setting, Options& options) {
  constexpr absl::string_view kAllowed = "use a number between 0 and 1, both exclusive";
  const absl::StatusOr<double> value = ReadNumber(setting, kAllowed);
  if (!value.ok()) return value.status();
  if (*value <= 0 || *value >= 1) return Bad(setting, kAllowed);
  options.garbage_collection_threshold = *value;
  return absl::OkStatus();
}

absl::Status ReadFraction(const Setting& setting, Options& options) {
  constexpr absl::string_view kAllowed = "use a number from 0 to 1";
  const absl::StatusOr<double> value = ReadNumber(setting, kAllowed);
  if (!value.ok()) return value.status();
  if (*value < 0 || *value > 1) return Bad(setting, kAllowed);
  options.per_process_memory_fraction = *value;
  return absl::OkStatus();
}

// A fraction of the device's memory or a number of GiB ("64g"); what cannot be read is ignored, as upstream does.
absl::Status ReadReserve(const Setting& setting, Options& options) {
  absl::string_view number = setting.value;
  const bool is_gib = absl::ConsumeSuffix(&number, "G") || absl::ConsumeSuffix(&number, "g");
  double value = 0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value) || value <= 0) {
    options.notes.push_back(absl::StrCat(setting.key, ": '", setting.value, "' cannot be read and is ignored"));
    return absl::OkStatus();
  }
  options.expandable_reserve = {};
  if (is_gib) {
    options.expandable_reserve.bytes = static_cast<std::uint64_t>(std::min(value * kGiB, 0x1p62));
  } else {
    options.expandable_reserve.fraction_of_total = value;
  }
  return absl::OkStatus();
}

absl::Status ReadBypass(const Setting& setting, Options& options) {
  const absl::StatusOr<std::uint64_t> bytes = ReadMebibytes(setting, 0, true);
  if (!bytes.ok()) return bytes.status();
  options.roundup_bypass_threshold_bytes = *bytes;
  return absl::OkStatus();
}

absl::Status ReadFlag(const Setting& setting, bool& out) {
  const absl::StatusOr<bool> value = ReadBool(setting);
  if (!value.ok()) return value.status();
  out = *value;
  return absl::OkStatus();
}

absl::Status ReadBackend(const Setting& setting, Options& options) {
  if (setting.value == "native") return absl::OkStatus();
  if (setting.value == "cudaMallocAsync" && options.compat != Compat::kTorch113) {
    return Bad(setting, "only 'native' has a block-splitting policy that can be replayed");
  }
  return Bad(setting, "use native");
}

// Keys that change where nothing lands: read for form, then noted.
bool IsWithoutEffect(const Setting& setting, Compat compat) {
  static constexpr absl::string_view kKeys[] = {
      "release_lock_on_cudamalloc",    "pinned_use_cuda_host_register",  "pinned_num_register_threads",
      "pinned_use_background_threads", "pinned_reserve_segment_size_mb", "graph_capture_record_stream_reuse",
      "pinned_use_hip_host_register",  "release_lock_on_hipmalloc",      "expandable_segments_reserve_by_class",
      "use_cuda_host_register"};
  if (compat == Compat::kTorch113) return false;
  return std::find(std::begin(kKeys), std::end(kKeys), setting.key) != std::end(kKeys);
}

absl::Status Apply(const Setting& setting, Options& options) {
  const Compat compat = options.compat;
  const bool since_26 = compat != Compat::kTorch113;
  const bool late = IsLate(compat);
  if (setting.key == "max_split_size_mb") return ReadSplitLimit(setting, options, options.max_split_size_bytes);
  if (setting.key == "garbage_collection_threshold") return ReadThreshold(setting, options);
  if (setting.key == "roundup_power2_divisions") return ReadDivisions(setting, options);
  if (setting.key == "backend") return ReadBackend(setting, options);
  if (!since_26 && setting.key == "roundup_bypass_threshold_mb") return ReadBypass(setting, options);
  if (since_26 && setting.key == "expandable_segments") return ReadFlag(setting, options.expandable_segments);
  if (since_26 && setting.key == "max_non_split_rounding_mb") {
    return ReadSplitLimit(setting, options, options.max_non_split_rounding_bytes);
  }
  if (late && setting.key == "large_segment_size_mb") return absl::OkStatus();  // read first
  if (late && setting.key == "throw_on_cudamalloc_oom") return ReadFlag(setting, options.throw_on_cudamalloc_oom);
  if (late && setting.key == "per_process_memory_fraction") return ReadFraction(setting, options);
  if (late && setting.key == "expandable_segments_reserve") return ReadReserve(setting, options);
  if (IsWithoutEffect(setting, compat)) {
    options.notes.push_back(absl::StrCat(setting.key, ": accepted, changes no decision here"));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", setting.key, "' is no setting of ", CompatName(compat), " (value '", setting.value, "')"));
}

}  // namespace

absl::StatusOr<Options> ParseConf(absl::string_view conf, Compat compat) {
  absl::StatusOr<std::vector<Setting>> settings = SplitConf(conf);
  if (!settings.ok()) return settings.status();
  Options options;
  options.compat = compat;
  options.free_order = DefaultFreeOrder(compat);
  options.conf = std::string(conf);
  for (const Setting& setting : *settings) {
    if (!IsLate(compat) || setting.key != "large_segment_size_mb") continue;
    if (absl::Status status = ReadLargeSegment(setting, options); !status.ok()) return status;
  }
  for (const Setting& setting : *settings) {
    if (absl::Status status = Apply(setting, options); !status.ok()) return status;
  }
  return options;
}

}  // namespace ashlar::policy
