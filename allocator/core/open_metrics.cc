#include "allocator/core/open_metrics.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "allocator/core/memory_stats.h"

namespace ashlar::core {
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
