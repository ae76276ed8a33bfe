#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/held_report.h"
#include "commands/explain/suggestions.h"
#include "commands/shared/json_values.h"
#include "commands/shared/what_if_fields.h"

namespace ashlar::report {
namespace {

Json Interval(const std::optional<answers::ByteSpan>& span) {
  return span.has_value() ? Json::Array({span->low_bytes, span->high_bytes}) : Json(nullptr);
}

Json AccountingJson(const answers::OomAccounting& parts) {
  return {{"total_bytes", OrNull(parts.total_bytes)},
          {"allocated_bytes", OrNull(parts.allocated_bytes)},
          {"reserved_bytes", OrNull(parts.reserved_bytes)},
          {"live_bytes", OrNull(parts.live_bytes)},
          {"rounding_bytes", OrNull(parts.rounding_bytes)},
          {"pending_bytes", OrNull(parts.pending_bytes)},
          {"stranded_bytes", OrNull(parts.stranded_bytes)},
          {"whole_free_bytes", OrNull(parts.whole_free_bytes)},
          {"private_pool_bytes", OrNull(parts.private_pool_bytes)},
          {"outside_bytes", OrNull(parts.outside_bytes)},
          {"free_bytes", OrNull(parts.free_bytes)}};
}

Json FidelityJson(const std::optional<replay::Fidelity>& fidelity) {
  if (!fidelity.has_value()) return nullptr;
  return {{"matched", fidelity->matched},
          {"total", fidelity->total},
          {"segments_matched", fidelity->segments_matched},
          {"segments_total", fidelity->segments_total},
          {"final_state_matches", fidelity->final_state_matches},
          {"segment_addresses_used", fidelity->segment_addresses_used},
          {"tails_inferred", fidelity->tails_inferred}};
}

Json WhatIfJson(const whatif::WhatIfRow& row) {
  static const auto* fields =
      new Fields<whatif::WhatIfRow>(FieldsOf<whatif::WhatIfRow>().AllBut("what_if", {"retries"}));
  return fields->ToJson(row);
}

Json RangeJson(const analyses::EventRange& range) { return {{"begin_event", range.begin}, {"end_event", range.end}}; }

Json PhaseJson(const analyses::Phase& phase) {
  return {{"name", phase.name}, {"begin_event", phase.events.begin}, {"end_event", phase.events.end}};
}

Json LeakJson(const answers::LeakLine& leak) {
  return {
      {"label", leak.label}, {"bytes_per_step", leak.bytes_per_step}, {"blocks", leak.blocks}, {"bytes", leak.bytes}};
}

Json FixRowJson(const whatif::WhatIfRow& row) {
  static const auto* fields = new Fields<whatif::WhatIfRow>(
      FieldsOf<whatif::WhatIfRow>().Only("fix_row", {"peak_reserved_bytes", "ooms", "retries", "driver_calls"}));
  return fields->ToJson(row);
}

Json FixJson(const std::optional<whatif::FixTest>& fix) {
  if (!fix.has_value()) return nullptr;
  return {{"change", fix->change},
          {"is_setting", fix->is_setting},
          {"before", FixRowJson(fix->before)},
          {"after", FixRowJson(fix->after)},
          {"shows_symptom", fix->shows_symptom},
          {"removes_symptom", fix->removes_symptom}};
}

Json CauseJson(const answers::ExplainedCause& cause) {
  const analyses::CauseFinding& finding = cause.finding;
  const bool is_found = finding.finding == analyses::Finding::kFound;
  return {{"name", std::string(analyses::CauseName(finding.kind))},
          {"sentence", std::string(analyses::CauseSentence(finding.kind))},
          {"finding", std::string(analyses::FindingName(finding.finding))},
          {"confidence", is_found ? Json(std::string(analyses::ConfidenceName(finding.confidence))) : Json(nullptr)},
          {"bytes", is_found ? Json(finding.bytes) : Json(nullptr)},
          {"to_come_bytes", finding.to_come_bytes},
          {"is_footnote", finding.is_footnote},
          {"evidence", finding.evidence},
          {"counter_evidence", finding.counter_evidence},
          {"missing", TextOrNull(finding.missing)},
          {"lines", cause.lines},
          {"fix", FixJson(cause.fix)}};
}

template <typename Rows, typename ToRow>
Json List(const Rows& rows, ToRow to_row) {
  Json out = Json::Array();
  for (const auto& row : rows) out.Append(to_row(row));
  return out;
}

Json StackJson(const analyses::LabelledStack& row) {
  return {{"bytes", row.bytes}, {"blocks", row.blocks}, {"label", row.label}};
}

Json SizeJson(const analyses::LiveSize& row) {
  return {
      {"bytes", row.bytes}, {"blocks", row.blocks}, {"block_bytes", row.block_bytes}, {"stream", Handle(row.stream)}};
}

Json RaisedAtJson(const std::optional<answers::RaisedAt>& raised) {
  if (!raised.has_value()) return nullptr;
  return {{"line", raised->line}, {"code", TextOrNull(raised->code)}, {"path", raised->path}};
}

Json MessageJson(const std::optional<answers::MessageFacts>& message) {
  if (!message.has_value()) return nullptr;
  return {{"family", message->family},
          {"device", OrNull(message->device)},
          {"truncated", message->is_cut_off},
          {"told", message->told},
          {"figures", List(message->figures, [](const formats::NamedFigure& named) -> Json {
             return {{"name", named.name}, {"bytes", named.figure.MiddleBytes()}, {"printed", named.figure.printed}};
           })}};
}

Json AtEndJson(const std::optional<answers::LiveAtEnd>& at_end) {
  if (!at_end.has_value()) return nullptr;
  return {{"bytes", at_end->bytes}, {"blocks", at_end->blocks}, {"stacks", List(at_end->lines, StackJson)}};
}

Json ReleaseJson(const answers::FailureLines& failure) {
  const std::optional<analyses::ReleaseSet>& release = failure.request.release;
  if (!release.has_value()) return nullptr;
  return {{"bytes", release->bytes},
          {"blocks", release->blocks.size()},
          {"lower_bound_bytes", release->lower_bound_bytes},
          {"is_minimal", release->is_minimal},
          {"is_one_run", release->is_one_run},
          {"stacks", List(failure.release, StackJson)}};
}

Json RungJson(const analyses::LadderRung& rung) {
  return {{"name", rung.name},
          {"bytes", rung.bytes},
          {"would_serve", rung.would_serve},
          {"remark", TextOrNull(rung.remark)}};
}

Json FailureJson(const std::optional<answers::FailureLines>& failure) {
  if (!failure.has_value()) return nullptr;
  const analyses::FailedRequest& request = failure->request;
  return {{"event", request.event},
          {"request_bytes", request.request_bytes},
          {"segment_bytes", request.segment_bytes},
          {"device_free_bytes", request.device_free_bytes},
          {"stream", Handle(request.stream)},
          {"pool_id", Json::Array({request.pool.first, request.pool.second})},
          {"is_small_pool", request.is_small_pool},
          {"is_limited", request.is_limited},
          {"largest_servable_bytes", request.largest_servable_bytes},
          {"largest_cached_bytes", request.largest_cached_bytes},
          {"free_in_other_streams_bytes", request.free_in_other_streams_bytes},
          {"free_in_other_pools_bytes", request.free_in_other_pools_bytes},
          {"returned_bytes", request.returned_bytes},
          {"returned_segments", request.returned_segments},
          {"rungs", List(request.rungs, RungJson)},
          {"release", ReleaseJson(*failure)}};
}

Json LabelJson(const answers::LabelLine& line) {
  return {{"label", line.label},
          {"kind", answers::LabelKindName(line.kind)},
          {"bytes", line.bytes},
          {"blocks", line.blocks}};
}

Json HostJson(const std::optional<answers::HostFigures>& host) {
  if (!host.has_value()) return nullptr;
  return {{"held_bytes", host->held_bytes},
          {"in_use_bytes", host->in_use_bytes},
          {"peak_held_bytes", OrNull(host->peak_held_bytes)},
          {"peak_in_use_bytes", OrNull(host->peak_in_use_bytes)},
          {"blocks", host->blocks},
          {"events", host->events}};
}

Json PinJson(const answers::PinLine& line) {
  return {{"label", line.label},   {"blame_bytes", line.blame_bytes},           {"size_bytes", line.size_bytes},
          {"blocks", line.blocks}, {"oldest_event", OrNull(line.oldest_event)}, {"phase", TextOrNull(line.phase)}};
}

Json PinsJson(const answers::PinLines& pins) {
  return {{"lines", List(pins.lines, PinJson)},
          {"other_blame_bytes", pins.other_blame_bytes},
          {"other_blocks", pins.other_blocks}};
}

Json ProgramJson(const answers::ProgramView& view) {
  const bool is_period = view.steps.source == analyses::StepSource::kPeriod;
  return {{"steps_source", std::string(StepSourceName(view.steps.source))},
          {"steps_told_from_sizes", view.steps.told_from_sizes},
          {"regularity", is_period ? Json(view.steps.regularity) : Json(nullptr)},
          {"moment", TextOrNull(view.moment)},
          {"steps", List(view.steps.steps, RangeJson)},
          {"phases", List(view.steps.phases, PhaseJson)},
          {"leaks", List(view.leaks, LeakJson)}};
}

Json ProgramRemedyJson(const whatif::ProgramRemedy& remedy) {
  return {{"cause", std::string(analyses::CauseName(remedy.cause))},
          {"sentence", remedy.sentence},
          {"python", remedy.python},
          {"bytes", remedy.bytes},
          {"replayed_bytes", OrNull(remedy.replayed_bytes)},
          {"is_proven", remedy.is_proven}};
}

Json OwnJson(const std::optional<whatif::OwnAllocator>& own) {
  if (!own.has_value()) return nullptr;
  return {{"what_if", WhatIfJson(own->row)}, {"sentence", TextOrNull(own->sentence)}, {"run", OrNull(own->run)}};
}

}  // namespace

Json ExplanationJson(const answers::Explanation& e) {
  Json out;
  out["source"] = e.source;
  out["headline"] = e.verdict.headline;
  out["verdict"] = std::string(analyses::VerdictName(e.verdict.kind));
  out["verdict_certain"] = e.verdict.is_certain;
  out["evidence"] = e.verdict.evidence;
  out["moment"] = TextOrNull(e.memory.moment);
  out["accounting"] = AccountingJson(e.memory.accounting);
  out["tried_bytes"] = OrNull(e.failure.tried_bytes);
  out["request_bytes"] = OrNull(e.failure.request_bytes);
  out["request_interval_bytes"] = Interval(e.failure.request_interval);
  out["headroom_bytes"] = e.failure.headroom.has_value() ? Json(e.failure.headroom->value_bytes) : Json(nullptr);
  out["headroom_interval_bytes"] = Interval(e.failure.headroom);
  out["peak"] = {{"allocated_bytes", OrNull(e.memory.peak.allocated_bytes)},
                 {"active_bytes", OrNull(e.memory.peak.active_bytes)},
                 {"reserved_bytes", OrNull(e.memory.peak.reserved_bytes)},
                 {"utilisation", OrNull(e.memory.peak.utilisation)}};
  out["stacks"] = List(e.memory.holders.stacks, StackJson);
  out["sizes"] = List(e.memory.holders.sizes, SizeJson);
  out["held"] = HeldJson(e.memory.holders.names);
  out["labels"] = List(e.memory.holders.labels, LabelJson);
  out["pinned_host"] = HostJson(e.memory.host);
  out["live_at_end"] = AtEndJson(e.memory.at_end);
  out["message"] = MessageJson(e.failure.message);
  out["raised_at"] = RaisedAtJson(e.failure.raised_at);
  out["failure"] = FailureJson(e.failure.recorded);
  out["pins"] = PinsJson(e.memory.pins);
  out["program"] = ProgramJson(e.program);
  out["causes"] = List(e.why.causes, CauseJson);
  out["program_remedies"] = List(e.why.remedies, ProgramRemedyJson);
  out["fidelity"] = FidelityJson(e.what_ifs.fidelity);
  out["replayed_as"] = TextOrNull(e.what_ifs.replayed_as);
  out["what_if_capacity_bytes"] = OrNull(e.what_ifs.capacity_bytes);
  out["what_if"] = List(e.what_ifs.rows, WhatIfJson);
  out["paste"] = OrNull(e.what_ifs.advice.paste);
  out["advice"] = TextOrNull(e.what_ifs.advice.sentence);
  out["own_allocator"] = OwnJson(e.what_ifs.own);
  out["next_step"] = TextOrNull(e.verdict.next.sentence);
  out["next_lines"] = e.verdict.next.lines;
  out["actions"] = List(answers::SuggestionsOf(e), [](const answers::Suggestion& action) -> Json {
    return {{"proof", std::string(answers::ProofName(action.proof))},
            {"what", TextOrNull(action.what)},
            {"lines", action.lines},
            {"gain", TextOrNull(action.gain)}};
  });
  out["notes"] = JsonOf(e.notes);
  return out;
}

std::string ToJson(const std::vector<answers::Explanation>& explanations, bool as_list) {
  const Json out = explanations.size() == 1 && !as_list ? ExplanationJson(explanations.front())
                                                        : List(explanations, ExplanationJson);
  return out.ToText();
}

namespace {

std::string CountOf(std::uint64_t count, const char* what) {
  return absl::StrCat(FormatCount(count), " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string ProjectedText(const whatif::WhatIfRow& row) {
  if (!row.gets_past.value_or(row.is_cut_off && row.ooms == 0)) return "";
  if (!row.projected.has_value()) return "gets past; nothing is known beyond";
  const whatif::ProjectedPart& next = *row.projected;
  if (next.ooms == 0) {
    return absl::StrCat("gets past; ", CountOf(next.requests, "request"), " more fit, peak ",
                        FormatBytes(next.peak_reserved_bytes));
  }
  if (next.failed_steps_later == 0) {
    return absl::StrCat("gets past; fails ", CountOf(next.failed_after, "request"), " on: needs ",
                        FormatBytes(next.needed_bytes));
  }
  const std::string steps = absl::StrCat("gets past; fails ", CountOf(next.failed_steps_later, "step"), " on: ");
  if (next.growth_bytes_per_step == 0) return absl::StrCat(steps, "needs ", FormatBytes(next.needed_bytes));
  return absl::StrCat(steps, "+", FormatBytes(next.growth_bytes_per_step), " a step");
}

}  // namespace ashlar::report
