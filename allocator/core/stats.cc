#include "allocator/core/stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ashlar::core {
namespace {

constexpr PoolStatName kPoolStats[] = {
    {"active", "Blocks handed out, and those freed that wait for work on another stream", &Stats::active},
    {"active_bytes", "Bytes of the active blocks", &Stats::active_bytes},
    {"allocated_bytes", "Bytes of the blocks handed out and not freed yet", &Stats::allocated_bytes},
    {"allocation", "Blocks handed out and not freed yet", &Stats::allocation},
    {"inactive_split", "Free blocks that share a segment with others", &Stats::inactive_split},
    {"inactive_split_bytes", "Bytes of the free blocks that share a segment with others", &Stats::inactive_split_bytes},
    {"requested_bytes", "Bytes that were asked for, of the active blocks", &Stats::requested_bytes},
    {"reserved_bytes", "Bytes of the segments, of expandable ones the mapped bytes", &Stats::reserved_bytes},
    {"segment", "Segments held, expandable ones not counted", &Stats::segment},
};

constexpr SingleStatName kSingleStats[] = {
    {"oversize_allocations", "Blocks handed out of at least max_split_size", &Stats::oversize_allocations},
    {"oversize_segments", "Segments of at least max_split_size", &Stats::oversize_segments},
};

constexpr CountName kCounts[] = {
    {"num_alloc_retries", "Requests that returned the whole cache and tried again", &Stats::num_alloc_retries},
    {"num_device_alloc", "Segments obtained and successful mappings", &Stats::num_device_alloc},
    {"num_device_free", "Segments returned and unmappings", &Stats::num_device_free},
    {"num_oom_rejections", "Requests refused by throw_on_cudamalloc_oom", &Stats::num_oom_rejections},
    {"num_ooms", "Requests that failed for good", &Stats::num_ooms},
    {"num_sync_all_streams", "Waits for all pending frees", &Stats::num_sync_all_streams},
};

using Pairs = std::vector<std::pair<std::string, std::int64_t>>;

void AddStat(const std::string& prefix, const Stat& stat, Pairs& out) {
  out.emplace_back(prefix + ".allocated", stat.allocated);
  out.emplace_back(prefix + ".current", stat.current);
  out.emplace_back(prefix + ".freed", stat.freed());
  out.emplace_back(prefix + ".peak", stat.peak);
}

}  // namespace

absl::Span<const PoolStatName> PoolStatNames() { return kPoolStats; }
absl::Span<const SingleStatName> SingleStatNames() { return kSingleStats; }
absl::Span<const CountName> CountNames() { return kCounts; }

Pairs MemoryStats(const Stats& stats, const policy::Options& options) {
  Pairs out;
  for (const PoolStatName& pool_stat : kPoolStats) {
    const PoolStat& values = stats.*pool_stat.stat;
    AddStat(absl::StrCat(pool_stat.name, ".all"), values[PoolKind::kAll], out);
    AddStat(absl::StrCat(pool_stat.name, ".large_pool"), values[PoolKind::kLarge], out);
    AddStat(absl::StrCat(pool_stat.name, ".small_pool"), values[PoolKind::kSmall], out);
  }
  for (const SingleStatName& single : kSingleStats) AddStat(std::string(single.name), stats.*single.stat, out);
  for (const CountName& count : kCounts) {
    out.emplace_back(std::string(count.name), static_cast<std::int64_t>(stats.*count.count));
  }
  out.emplace_back("max_split_size", static_cast<std::int64_t>(options.max_split_size_bytes));  // kUnlimited is -1
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

// A statistic's name without its unit, and the unit: OpenMetrics wants a name to end with it.
struct Named {
  explicit Named(absl::string_view torch_name) : base(torch_name), unit("blocks") {
    if (absl::ConsumeSuffix(&base, "_bytes")) {
      unit = "bytes";
    } else if (base == "segment" || base == "oversize_segments") {
      unit = "segments";
    }
    if (base == "segment") base = "held";
    if (base == "oversize_segments" || base == "oversize_allocations") base = "oversize";
  }
  absl::string_view base;
  absl::string_view unit;
};

class MetricsText {
 public:
  explicit MetricsText(absl::Span<const MetricsSource> sources) : sources_(sources) {}

  // One family: a value for each source, as `value(source, labels)` adds them by Sample.
  template <typename Samples>
  void Family(absl::string_view name, absl::string_view type, absl::string_view unit, absl::string_view help,
              Samples samples) {
    absl::StrAppend(&out_, "# TYPE ", name, " ", type, "\n");
    if (!unit.empty()) absl::StrAppend(&out_, "# UNIT ", name, " ", unit, "\n");
    absl::StrAppend(&out_, "# HELP ", name, " ", help, ".\n");
    const std::string sample = absl::StrCat(name, type == "counter" ? "_total" : "");
    for (const MetricsSource& source : sources_) {
      samples(source, [&](absl::string_view pool, absl::string_view value) { Sample(sample, source, pool, value); });
    }
  }

  // The four families of a statistic; `stat_of(source, add)` calls add(pool, stat) for each of its pools.
  template <typename StatOf>
  void Stats(absl::string_view torch_name, absl::string_view help, StatOf stat_of) {
    const Named named(torch_name);
    const auto family = [&](absl::string_view what, absl::string_view type, const std::string& text, auto value) {
      Family(absl::StrCat("ashlar_", named.base, what, "_", named.unit), type, named.unit, text,
             [&](const MetricsSource& source, auto sample) {
               stat_of(source,
                       [&](absl::string_view pool, const Stat& stat) { sample(pool, absl::StrCat(value(stat))); });
             });
    };
    family("", "gauge", std::string(help), [](const Stat& stat) { return stat.current; });
    family("_peak", "gauge", absl::StrCat(help, ": the most so far"), [](const Stat& stat) { return stat.peak; });
    family("_increase", "counter", absl::StrCat(help, ": sum of all increases"),
           [](const Stat& stat) { return stat.allocated; });
    family("_decrease", "counter", absl::StrCat(help, ": sum of all decreases"),
           [](const Stat& stat) { return stat.freed(); });
  }

  std::string Finish() && { return std::move(out_) + "# EOF\n"; }

 private:
  void Sample(absl::string_view name, const MetricsSource& source, absl::string_view pool, absl::string_view value) {
    const std::string device = absl::StrReplaceAll(source.device, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(&out_, name, "{device=\"", device, "\"");
    if (!pool.empty()) absl::StrAppend(&out_, ",pool=\"", pool, "\"");
    absl::StrAppend(&out_, "} ", value, "\n");
  }

  absl::Span<const MetricsSource> sources_;
  std::string out_;
};

}  // namespace

std::string OpenMetricsText(absl::Span<const MetricsSource> sources) {
  MetricsText text(sources);
  for (const PoolStatName& pool_stat : PoolStatNames()) {
    text.Stats(pool_stat.name, pool_stat.help, [&](const MetricsSource& source, auto add) {
      const PoolStat& stat = source.stats.*pool_stat.stat;
      add("all", stat[PoolKind::kAll]);
      add("small", stat[PoolKind::kSmall]);
      add("large", stat[PoolKind::kLarge]);
    });
  }
  for (const SingleStatName& single : SingleStatNames()) {
    text.Stats(single.name, single.help,
               [&](const MetricsSource& source, auto add) { add("", source.stats.*single.stat); });
  }
  for (const CountName& count : CountNames()) {
    text.Family(absl::StrCat("ashlar_", absl::StripPrefix(count.name, "num_")), "counter", "", count.help,
                [&](const MetricsSource& source, auto sample) { sample("", absl::StrCat(source.stats.*count.count)); });
  }
  text.Family("ashlar_max_split_size_bytes", "gauge", "bytes", "Blocks of this size and more are never split",
              [](const MetricsSource& source, auto sample) {
                const bool is_unlimited = source.max_split_size_bytes == policy::kUnlimited;
                sample("", is_unlimited ? "+Inf" : absl::StrCat(source.max_split_size_bytes));
              });
  return std::move(text).Finish();
}

}  // namespace ashlar::core
