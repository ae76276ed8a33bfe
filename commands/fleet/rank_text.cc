#include "commands/fleet/rank_text.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ashlar::fleet {
namespace {

using Json = nlohmann::ordered_json;
using answers::RankCause;
using answers::RankCurve;
using answers::RankFailure;
using answers::RankGrowth;
using answers::RankRow;
using answers::RankSummary;
using whatif::ProjectedPart;
using whatif::Risk;
using whatif::WhatIfRow;

// Each type has one list of its fields, for both ways. A visitor is a Writer or a Reader.
template <typename V>
void Fields(V& v, RankCause& c) {
  v("name", c.name), v("sentence", c.sentence), v("confidence", c.confidence), v("bytes", c.bytes);
  v("is_sickness", c.is_sickness), v("line", c.line);
}

template <typename V>
void Fields(V& v, RankFailure& f) {
  v("time_us", f.time_us), v("request_bytes", f.request_bytes), v("verdict", f.verdict);
}

template <typename V>
void Fields(V& v, RankCurve& c) {
  v("is_time", c.is_time), v("begin", c.begin), v("end", c.end);
  v("allocated_bytes", c.allocated_bytes), v("reserved_bytes", c.reserved_bytes);
}

template <typename V>
void Fields(V& v, RankGrowth& g) {
  v("bytes_per_step", g.bytes_per_step), v("bytes", g.bytes), v("line", g.line);
}

template <typename V>
void Fields(V& v, Risk& r) {
  v("name", r.name), v("level", r.level), v("sentence", r.sentence), v("source", r.source);
}

template <typename V>
void Fields(V& v, ProjectedPart& p) {
  v("requests", p.requests), v("steps", p.steps), v("peak_reserved_bytes", p.peak_reserved_bytes);
  v("retries", p.retries), v("ooms", p.ooms), v("failed_after", p.failed_after);
  v("failed_steps_later", p.failed_steps_later), v("needed_bytes", p.needed_bytes);
  v("available_bytes", p.available_bytes), v("growth_bytes_per_step", p.growth_bytes_per_step);
  v("is_extrapolated", p.is_extrapolated);
}

template <typename V>
void Fields(V& v, WhatIfRow& r) {
  v("conf", r.conf), v("is_baseline", r.is_baseline), v("peak_reserved_bytes", r.peak_reserved_bytes);
  v("peak_allocated_bytes", r.peak_allocated_bytes), v("ooms", r.ooms), v("driver_calls", r.driver_calls);
  v("cost_ns", r.cost_ns), v("retries", r.retries), v("feasible", r.feasible), v("risks", r.risks);
  v("gets_past", r.gets_past), v("is_cut_off", r.is_cut_off), v("projected", r.projected);
}

template <typename V>
void Fields(V& v, RankRow& r) {
  v("conf", r.conf), v("is_recorded", r.is_recorded), v("row", r.row);
}

template <typename V>
void Fields(V& v, RankSummary& s) {
  v("source", s.source), v("headline", s.headline), v("device", s.device), v("events", s.events);
  v("failure", s.failure), v("peak_allocated_bytes", s.peak_allocated_bytes);
  v("peak_reserved_bytes", s.peak_reserved_bytes), v("stranded_bytes", s.stranded_bytes);
  v("total_bytes", s.total_bytes), v("causes", s.causes), v("growth", s.growth), v("steps", s.steps);
  v("addresses_matched", s.addresses_matched), v("addresses_total", s.addresses_total);
  v("is_exact", s.is_exact), v("compat", s.compat), v("conf", s.conf), v("carried", s.carried);
  v("unread", s.unread), v("rows", s.rows), v("curve", s.curve);
}

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    out_[name] = ToJson(value);
  }

  template <typename T>
  static Json Whole(T& value) {
    Writer writer;
    Fields(writer, value);
    return std::move(writer.out_);
  }

 private:
  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      return Whole(value);
    } else {
      return value;
    }
  }
  template <typename T>
  static Json ToJson(std::optional<T>& value) {
    return value.has_value() ? ToJson(*value) : Json(nullptr);
  }
  template <typename T>
  static Json ToJson(std::vector<T>& values) {
    Json out = Json::array();
    for (T& value : values) out.push_back(ToJson(value));
    return out;
  }

  Json out_ = Json::object();
};

// Throws what nlohmann throws where a field is missing or of another type.
class Reader {
 public:
  explicit Reader(const Json& in) : in_(in) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    FromJson(in_.at(name), value);
  }

 private:
  template <typename T>
  static void FromJson(const Json& in, T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(in.get<int>());
    } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      Reader reader(in);
      Fields(reader, value);
    } else {
      in.get_to(value);
    }
  }
  template <typename T>
  static void FromJson(const Json& in, std::optional<T>& value) {
    // Filled beside it: GCC 12 takes what an optional holds after emplace for uninitialised.
    if (in.is_null()) return value.reset();
    T filled{};
    FromJson(in, filled);
    value = std::move(filled);
  }
  template <typename T>
  static void FromJson(const Json& in, std::vector<T>& values) {
    values.clear();
    for (const Json& item : in) FromJson(item, values.emplace_back());
  }

  const Json& in_;
};

}  // namespace

std::string WriteRank(const RankResult& result) {
  Json out;
  out["version"] = kRankTextVersion;
  if (result.ok()) {
    RankSummary summary = *result;
    out["summary"] = Writer::Whole(summary);
  } else {
    out["error"] = std::string(result.status().message());
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RankResult> ReadRank(absl::string_view line) {
  try {
    const Json in = Json::parse(line.begin(), line.end());
    if (in.at("version").get<int>() != kRankTextVersion) return absl::InvalidArgumentError("of another version");
    if (in.contains("error")) return RankResult(absl::InvalidArgumentError(in.at("error").get<std::string>()));
    RankSummary summary;
    Reader reader(in.at("summary"));
    Fields(reader, summary);
    return RankResult(std::move(summary));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no result of a rank: ", error.what()));
  }
}

}  // namespace ashlar::fleet
