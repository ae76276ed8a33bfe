#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/explain/explain_report.h"
#include "commands/explain/memory_fields.h"
#include "commands/explain/suggestions.h"
#include "commands/shared/fields.h"
#include "commands/shared/what_if_fields.h"

namespace ashlar::report {
namespace {

// A row of a what-if, as a setting that was tried and as a replay of a fix.
struct TriedSetting {
  const whatif::WhatIfRow& row;
};
struct FixRow {
  const whatif::WhatIfRow& row;
};

template <typename Shown>
const whatif::WhatIfRow& RowOf(const Shown& shown) {
  return shown.row;
}

std::vector<TriedSetting> TriedSettings(const answers::Explanation& of) {
  std::vector<TriedSetting> out;
  for (const whatif::WhatIfRow& row : of.what_ifs.rows) out.push_back({row});
  return out;
}

// The release set of a failure, with the lines that allocated its blocks.
struct ShownRelease {
  const analyses::ReleaseSet& set;
  const std::vector<analyses::LabelledStack>& stacks;
};

std::optional<ShownRelease> ReleaseOf(const answers::FailureLines& failure) {
  if (!failure.request.release.has_value()) return std::nullopt;
  return ShownRelease{*failure.request.release, failure.release};
}

std::optional<std::array<std::int64_t, 2>> IntervalOf(const std::optional<answers::ByteSpan>& span) {
  if (!span.has_value()) return std::nullopt;
  return std::array{span->low_bytes, span->high_bytes};
}

bool IsFound(const answers::ExplainedCause& cause) { return cause.finding.finding == analyses::Finding::kFound; }

std::optional<double> RegularityOf(const answers::ProgramView& view) {
  return view.steps.source == analyses::StepSource::kPeriod ? std::optional(view.steps.regularity) : std::nullopt;
}

}  // namespace

template <>
const Fields<formats::NamedFigure>& FieldsOf<formats::NamedFigure>() {
  using formats::NamedFigure;
  static const auto* fields = new Fields<NamedFigure>(
      Fields<NamedFigure>("message_figure")
          .Add("name", &NamedFigure::name, "What it is of: limit, weights, activations, kv_cache and the like.")
          .Add(
              "bytes", [](const auto& of) { return of.figure.MiddleBytes(); },
              "The middle of what the print can stand for.")
          .Add("printed", [](const auto& of) { return of.figure.printed; }, "As in the text."));
  return *fields;
}

template <>
const Fields<answers::MessageFacts>& FieldsOf<answers::MessageFacts>() {
  using answers::MessageFacts;
  static const auto* fields = new Fields<MessageFacts>(
      Fields<MessageFacts>("message")
          .Add("family", &MessageFacts::family, "Who raised it: pt-capacity, jax-xla, vllm, ggml and the like.")
          .AddCount("device", &MessageFacts::device, "As the message numbers it.")
          .Add("truncated", &MessageFacts::is_cut_off, "Its beginning or end is missing, as far as can be seen.")
          .Add("told", &MessageFacts::told, "How often the text tells this same failure.")
          .Add("figures", &MessageFacts::figures,
               "What it and the log beside it tell, other than the parts of the accounting."));
  return *fields;
}

template <>
const Fields<answers::RaisedAt>& FieldsOf<answers::RaisedAt>() {
  using answers::RaisedAt;
  static const auto* fields = new Fields<RaisedAt>(
      Fields<RaisedAt>("raised_at")
          .Add("line", &RaisedAt::line, "The innermost of the program's own lines.")
          .AddNonEmpty("code", &RaisedAt::code, "What stands on that line.")
          .Add("path", &RaisedAt::path, "The program's own lines that lead there and itself, outermost first."));
  return *fields;
}

template <>
const Fields<analyses::LadderRung>& FieldsOf<analyses::LadderRung>() {
  using analyses::LadderRung;
  static const auto* fields = new Fields<LadderRung>(
      Fields<LadderRung>("rung")
          .Add("name", &LadderRung::name, "What the allocator tries.")
          .Add("bytes", &LadderRung::bytes, "Bytes it could make available, on the state in which the ladder began.")
          .Add("would_serve", &LadderRung::would_serve, "Whether the request fits after it.")
          .AddNonEmpty("remark", &LadderRung::remark, "Why not, or what is not in the trace."));
  return *fields;
}

template <>
const Fields<ShownRelease>& FieldsOf<ShownRelease>() {
  static const auto* fields = new Fields<ShownRelease>(
      Fields<ShownRelease>("release")
          .Add(
              "bytes", [](const auto& of) { return of.set.bytes; },
              "Bytes of those live blocks; 0: made again, the request fits.")
          .Add(
              "blocks", [](const auto& of) { return of.set.blocks.size(); }, "Number of them.")
          .Add(
              "lower_bound_bytes", [](const auto& of) { return of.set.lower_bound_bytes; },
              "No set with fewer bytes can do.")
          .Add(
              "is_minimal", [](const auto& of) { return of.set.is_minimal; },
              "The set found is proven to have the fewest bytes.")
          .Add(
              "is_one_run", [](const auto& of) { return of.set.is_one_run; },
              "They lie in a row; false: they hold whole segments, which go back to the device.")
          .Add(
              "stacks", [](const auto& of) { return of.stacks; },
              "The lines that allocated them, most bytes first, three at the most."));
  return *fields;
}

template <>
const Fields<analyses::FailedRequest>& FieldsOf<analyses::FailedRequest>() {
  using Request = analyses::FailedRequest;
  static const auto* fields = new Fields<Request>(
      Fields<Request>("failure")
          .AddCount("event", &Request::event, "Index of the error among the events.")
          .Add("request_bytes", &Request::request_bytes, "Bytes of the request after rounding.")
          .Add("segment_bytes", &Request::segment_bytes, "Bytes of the new segment it would have needed.")
          .Add("device_free_bytes", &Request::device_free_bytes, "Bytes that the device reported as free.")
          .Add(
              "stream", [](const auto& of) { return Handle(of.stream); },
              "Stream of the request, as the recorder's integer.")
          .Add(
              "pool_id", [](const auto& of) { return std::array<std::uint64_t, 2>{of.pool.first, of.pool.second}; },
              "Pool of the request; [0, 0] is the default pool, and what is taken where the trace names none.")
          .Add("is_small_pool", &Request::is_small_pool, "Whether it belongs to the pool for requests up to 1 MiB.")
          .Add("is_limited", &Request::is_limited,
               "The device had room for the segment: a memory fraction or another limit refused it.")
          .Add("largest_servable_bytes", &Request::largest_servable_bytes,
               "Greatest request that would have succeeded in that pool and stream, bytes after rounding.")
          .Add("largest_cached_bytes", &Request::largest_cached_bytes, "The same from the cache alone, bytes.")
          .Add("free_in_other_streams_bytes", &Request::free_in_other_streams_bytes,
               "Bytes of the largest free run that only its stream keeps away.")
          .Add("free_in_other_pools_bytes", &Request::free_in_other_pools_bytes,
               "Bytes of the largest free run that only its pool keeps away.")
          .Add("returned_bytes", &Request::returned_bytes, "Bytes that went back to the device right before the error.")
          .Add("returned_segments", &Request::returned_segments, "Segments (or ranges of pages) that went back then.")
          .Add("rungs", &Request::rungs, "The retry ladder in its order."));
  return *fields;
}

template <>
const Fields<answers::FailureLines>& FieldsOf<answers::FailureLines>() {
  using answers::FailureLines;
  static const auto* fields = new Fields<FailureLines>(
      Fields<FailureLines>("failure")
          .AddFrom(FieldsOf<analyses::FailedRequest>(), &FailureLines::request)
          .Add("release", &ReleaseOf,
               "The fewest live bytes whose release makes room; null: no set is known to be enough."));
  return *fields;
}

template <>
const Fields<answers::PinLine>& FieldsOf<answers::PinLine>() {
  using answers::PinLine;
  static const auto* fields = new Fields<PinLine>(
      Fields<PinLine>("pin")
          .Add("label", &PinLine::label, "File, line and function that allocated the blocks, or a block's address.")
          .Add("blame_bytes", &PinLine::blame_bytes, "Stranded bytes attributed to them.")
          .Add("size_bytes", &PinLine::size_bytes, "Bytes of the blocks.")
          .Add("blocks", &PinLine::blocks, "Number of them.")
          .AddCount("oldest_event", &PinLine::oldest_event,
                    "Event at which the oldest was allocated; null: before the recording began.")
          .AddNonEmpty("phase", &PinLine::phase, "Step or phase of the program at that event; null: not known."));
  return *fields;
}

template <>
const Fields<answers::PinLines>& FieldsOf<answers::PinLines>() {
  using answers::PinLines;
  static const auto* fields = new Fields<PinLines>(
      Fields<PinLines>("pins")
          .Add("lines", &PinLines::lines, "Most blame first; by line of code, by block where the trace has no stacks.")
          .Add("other_blame_bytes", &PinLines::other_blame_bytes,
               "Blame of all other blocks, bytes. Together with the lines: accounting.stranded_bytes.")
          .Add("other_blocks", &PinLines::other_blocks, "Number of those."));
  return *fields;
}

template <>
const Fields<analyses::EventRange>& FieldsOf<analyses::EventRange>() {
  using analyses::EventRange;
  static const auto* fields =
      new Fields<EventRange>(Fields<EventRange>("event_range")
                                 .AddCount("begin_event", &EventRange::begin, "Its first event, from 0.")
                                 .AddCount("end_event", &EventRange::end, "One past its last event."));
  return *fields;
}

template <>
const Fields<analyses::Phase>& FieldsOf<analyses::Phase>() {
  using analyses::Phase;
  static const auto* fields =
      new Fields<Phase>(Fields<Phase>("phase")
                            .Add("name", &Phase::name, "Told from stacks, or the mark's own name.")
                            .AddFrom(FieldsOf<analyses::EventRange>(), &Phase::events));
  return *fields;
}

template <>
const Fields<answers::LeakLine>& FieldsOf<answers::LeakLine>() {
  using answers::LeakLine;
  static const auto* fields = new Fields<LeakLine>(
      Fields<LeakLine>("leak")
          .Add("label", &LeakLine::label, "File, line and function nearest to the program's own code.")
          .Add("bytes_per_step", &LeakLine::bytes_per_step, "What the median step leaves behind, in bytes.")
          .Add("blocks", &LeakLine::blocks, "Blocks of all steps together.")
          .Add("bytes", &LeakLine::bytes, "Bytes alive at the end of the last whole step."));
  return *fields;
}

template <>
const Fields<answers::ProgramView>& FieldsOf<answers::ProgramView>() {
  using answers::ProgramView;
  static const auto* fields = new Fields<ProgramView>(
      Fields<ProgramView>("program")
          .AddWord(
              "steps_source", [](const auto& of) { return StepSourceName(of.steps.source); },
              WordsUpTo(analyses::StepSource::kPeriod, &StepSourceName),
              "The program's own marks, the period of its requests, or neither.")
          .Add(
              "steps_told_from_sizes", [](const auto& of) -> const auto& { return of.steps.told_from_sizes; },
              "True where the trace has no stacks: what repeats may be the layers of one pass.")
          .Add("regularity", &RegularityOf, "Of a period: share of the requests, 0 to 1, that repeat one step later.")
          .AddNonEmpty("moment", &ProgramView::moment,
                       "Step (from 1) and phase that the moment lies in, as far as known.")
          .Add(
              "steps", [](const auto& of) -> const auto& { return of.steps.steps; }, "Whole steps, in order.")
          .Add(
              "phases", [](const auto& of) -> const auto& { return of.steps.phases; },
              "Forward, backward, optimizer, marks of the program; by first event, may nest.")
          .Add("leaks", &ProgramView::leaks, "What each step leaves behind, most bytes a step first."));
  return *fields;
}

template <>
const Fields<FixRow>& FieldsOf<FixRow>() {
  static const auto* fields = new Fields<FixRow>(Fields<FixRow>("fix_row").AddFrom(
      FieldsOf<whatif::WhatIfRow>().Only("fix_row", {"peak_reserved_bytes", "ooms", "retries", "driver_calls"}),
      &RowOf<FixRow>));
  return *fields;
}

template <>
const Fields<whatif::FixTest>& FieldsOf<whatif::FixTest>() {
  using whatif::FixTest;
  static const auto* fields = new Fields<FixTest>(
      Fields<FixTest>("fix")
          .Add("change", &FixTest::change, "What was changed.")
          .Add("is_setting", &FixTest::is_setting,
               "True for a setting of the allocator, false for a change of the program.")
          .Add(
              "before", [](const auto& of) { return FixRow{of.before}; }, "The replay without the change.")
          .Add(
              "after", [](const auto& of) { return FixRow{of.after}; }, "The replay with it.")
          .Add("shows_symptom", &FixTest::shows_symptom, "Whether the replay without the change shows the symptom.")
          .Add("removes_symptom", &FixTest::removes_symptom, "Whether the change takes the symptom away."));
  return *fields;
}

template <>
const Fields<answers::ExplainedCause>& FieldsOf<answers::ExplainedCause>() {
  using answers::ExplainedCause;
  static const auto* fields = new Fields<ExplainedCause>(
      Fields<ExplainedCause>("cause")
          .Add(
              "name", [](const auto& of) { return analyses::CauseName(of.finding.kind); },
              "Stable key, see ashlar guide explain.")
          .Add(
              "sentence", [](const auto& of) { return analyses::CauseSentence(of.finding.kind); },
              "What the cause is, in one sentence.")
          .AddWord(
              "finding", [](const auto& of) { return analyses::FindingName(of.finding.finding); },
              WordsUpTo(analyses::Finding::kNotInTrace, &analyses::FindingName),
              "Whether it was found; not_in_trace: the input cannot show it.")
          .AddWord(
              "confidence",
              [](const auto& of) {
                return IsFound(of) ? std::optional(analyses::ConfidenceName(of.finding.confidence)) : std::nullopt;
              },
              WordsUpTo(analyses::Confidence::kProven, &analyses::ConfidenceName),
              "Of a found one; proven: seen, by the figures, by the blocks' own frames and lives, or by a replay of "
              "all requests under another setting or with other calls. A replay without the cause's own blocks proves "
              "nothing, and none is made.")
          .Add(
              "bytes", [](const auto& of) { return IsFound(of) ? std::optional(of.finding.bytes) : std::nullopt; },
              "Bytes that a found one explains.")
          .Add(
              "to_come_bytes", [](const auto& of) -> const auto& { return of.finding.to_come_bytes; },
              "Of those, what the program would have asked for after the failure; 0 where nothing is known to come.")
          .Add(
              "is_footnote", [](const auto& of) -> const auto& { return of.finding.is_footnote; },
              "True where it would have let the failed request pass, and is too little to be felt.")
          .Add(
              "evidence", [](const auto& of) -> const auto& { return of.finding.evidence; }, "What speaks for it.")
          .Add(
              "counter_evidence", [](const auto& of) -> const auto& { return of.finding.counter_evidence; },
              "What speaks against it.")
          .AddNonEmpty(
              "missing", [](const auto& of) -> const auto& { return of.finding.missing; },
              "What would tell, where the input cannot show it.")
          .Add("lines", &ExplainedCause::lines, "Lines of the program it is about, most bytes first.")
          .Add(
              "held_by", [](const auto& of) -> const auto& { return of.finding.holders; },
              "The variables that keep its memory and prove it, most bytes first; empty: lines and times tell it.")
          .Add("fix", &ExplainedCause::fix, "The replay that takes a found one away; null where none can."));
  return *fields;
}

template <>
const Fields<whatif::ProgramRemedy>& FieldsOf<whatif::ProgramRemedy>() {
  using whatif::ProgramRemedy;
  static const auto* fields = new Fields<ProgramRemedy>(
      Fields<ProgramRemedy>("program_remedy")
          .Add(
              "cause", [](const auto& of) { return analyses::CauseName(of.cause); },
              "The cause it takes away, by its key.")
          .Add("sentence", &ProgramRemedy::sentence, "What to change.")
          .Add("python", &ProgramRemedy::python, "The lines to write.")
          .Add("bytes", &ProgramRemedy::bytes, "Bytes that the cause explains at the moment looked at.")
          .Add("replayed_bytes", &ProgramRemedy::replayed_bytes,
               "Bytes off the peak of reserved memory in a replay with the change; null: not replayed.")
          .Add("is_proven", &ProgramRemedy::is_proven, "Whether the symptom is gone in that replay."));
  return *fields;
}

template <>
const Fields<TriedSetting>& FieldsOf<TriedSetting>() {
  static const auto* fields = new Fields<TriedSetting>(Fields<TriedSetting>("what_if").AddFrom(
      FieldsOf<whatif::WhatIfRow>().AllBut("what_if", {"retries"}), &RowOf<TriedSetting>));
  return *fields;
}

template <>
const Fields<whatif::OwnAllocator>& FieldsOf<whatif::OwnAllocator>() {
  using whatif::OwnAllocator;
  static const auto* fields = new Fields<OwnAllocator>(
      Fields<OwnAllocator>("own_allocator")
          .Add(
              "what_if", [](const auto& of) { return TriedSetting{of.row}; },
              "The same requests replayed from an empty allocator under policy:ashlar.")
          .AddNonEmpty("sentence", &OwnAllocator::sentence, "What it would do; null where it does not help either.")
          .Add("run", &OwnAllocator::run,
               "Line for the shell that starts the program with it; null where it does not mend what was recorded."));
  return *fields;
}

template <>
const Fields<answers::SettingRun>& FieldsOf<answers::SettingRun>() {
  using answers::SettingRun;
  static const auto* fields =
      new Fields<SettingRun>(Fields<SettingRun>("setting_run")
                                 .Add("conf", &SettingRun::conf, "For PYTORCH_CUDA_ALLOC_CONF.")
                                 .Add("ends", &SettingRun::ends, "To its end; false: a request found no memory again.")
                                 .Add("peak_reserved_bytes", &SettingRun::peak_reserved_bytes, "Of that run."));
  return *fields;
}

template <>
const Fields<answers::Suggestion>& FieldsOf<answers::Suggestion>() {
  using answers::Suggestion;
  static const auto* fields =
      new Fields<Suggestion>(Fields<Suggestion>("action")
                                 .AddWord(
                                     "proof", [](const auto& of) { return answers::ProofName(of.proof); },
                                     WordsUpTo(answers::Proof::kUnproven, &answers::ProofName),
                                     "How it is known: the program was run again with it, the recorded requests were "
                                     "replayed with it, the bytes of its cause say it, or a message alone does not "
                                     "tell.")
                                 .AddNonEmpty("what", &Suggestion::what, "A sentence; null where the lines say it.")
                                 .Add("lines", &Suggestion::lines, "For the shell, or for the program.")
                                 .AddNonEmpty("gain", &Suggestion::gain, "What it changes; null: not known."));
  return *fields;
}

template <>
const Fields<answers::Elsewhere>& FieldsOf<answers::Elsewhere>() {
  using answers::Elsewhere;
  static const auto* fields = new Fields<Elsewhere>(
      Fields<Elsewhere>("elsewhere")
          .AddNonEmpty("card", &Elsewhere::card, "Its name in the table of GPUs; null where a size was given.")
          .Add("total_bytes", &Elsewhere::total_bytes, "Its memory.")
          .Add("allocator_bytes", &Elsewhere::allocator_bytes, "What is left of it beside the context.")
          .Add("fits", &Elsewhere::fits, "Null where the input does not tell all that the program would ask for.")
          .Add("conf", &Elsewhere::conf,
               "The settings that the answer is about, as for PYTORCH_CUDA_ALLOC_CONF; null where none was replayed, "
               "or none helps.")
          .Add("peak_bytes", &Elsewhere::peak_bytes, "Greatest sum of segments under them.")
          .Add("sentence", &Elsewhere::sentence, "The answer in words."));
  return *fields;
}

template <>
const Fields<answers::Explanation>& FieldsOf<answers::Explanation>() {
  using answers::Explanation;
  static const auto* fields = new Fields<Explanation>(
      Fields<Explanation>("explanation")
          .Add("source", &Explanation::source, "What was read: kind, generation, device, number of events.")
          .Add(
              "headline", [](const auto& of) -> const auto& { return of.verdict.headline; },
              "What happened, in one line.")
          .AddWord(
              "verdict", [](const auto& of) { return analyses::VerdictName(of.verdict.kind); },
              WordsUpTo(analyses::OomVerdict::kUnknown, &analyses::VerdictName),
              "Kind of the failure, see ashlar guide explain.")
          .Add(
              "verdict_certain", [](const auto& of) -> const auto& { return of.verdict.is_certain; },
              "False where rounding of printed figures, or what the input leaves out, could change the verdict.")
          .Add(
              "evidence", [](const auto& of) -> const auto& { return of.verdict.evidence; },
              "Plain sentences, the verdict's own first.")
          .AddNonEmpty(
              "moment", [](const auto& of) -> const auto& { return of.memory.moment; },
              "When accounting and stacks were taken.")
          .Add(
              "accounting", [](const auto& of) -> const auto& { return of.memory.accounting; },
              "Where the bytes were at that moment.")
          .Add(
              "tried_bytes", [](const auto& of) -> const auto& { return of.failure.tried_bytes; },
              "Bytes of the new segment that was asked of the device.")
          .Add(
              "request_bytes", [](const auto& of) -> const auto& { return of.failure.request_bytes; },
              "Bytes the program asked for, where the input tells them exactly.")
          .Add(
              "request_interval_bytes", [](const auto& of) { return IntervalOf(of.failure.request_interval); },
              "Lowest and highest bytes the program can have asked for, both included.")
          .Add(
              "headroom_bytes",
              [](const auto& of) {
                return of.failure.headroom.has_value() ? std::optional(of.failure.headroom->value_bytes) : std::nullopt;
              },
              "Bytes to spare if there were no holes at all; negative: does not fit even then.")
          .Add(
              "headroom_interval_bytes", [](const auto& of) { return IntervalOf(of.failure.headroom); },
              "Lowest and highest headroom in bytes, given how the figures were rounded.")
          .Add(
              "peak", [](const auto& of) -> const auto& { return of.memory.peak; },
              "Greatest values over the recorded window.")
          .Add(
              "stacks", [](const auto& of) -> const auto& { return of.memory.holders.stacks; },
              "Live blocks by the line that allocated them, biggest first.")
          .Add(
              "sizes", [](const auto& of) -> const auto& { return of.memory.holders.sizes; },
              "Where the input names no block: live blocks by size and stream, biggest first.")
          .Add(
              "held", [](const auto& of) -> const auto& { return of.memory.holders.names; },
              "Who holds the live blocks, by name in the program; null where the input has no names "
              "(names.schema.json).")
          .Add(
              "labels", [](const auto& of) -> const auto& { return of.memory.holders.labels; },
              "Live blocks by the texts that the program put on them, most bytes first, five of each kind; empty where "
              "there are none.")
          .Add(
              "pinned_host", [](const auto& of) -> const auto& { return of.memory.host; },
              "Pinned memory of the host at the end of the recording; null where it was not recorded.")
          .Add(
              "live_at_end", [](const auto& of) -> const auto& { return of.memory.at_end; },
              "What a program that calls the device itself had not freed when the trace ends; null for the trace of an "
              "allocator.")
          .Add(
              "by_library", [](const auto& of) -> const auto& { return of.memory.by_library; },
              "Whose the memory is, of a program that calls the device itself; null for the trace of an allocator, and "
              "where no stacks were recorded.")
          .Add(
              "message", [](const auto& of) -> const auto& { return of.failure.message; },
              "Of an out-of-memory message: who raised it, and its figures; null without one.")
          .Add(
              "raised_at", [](const auto& of) -> const auto& { return of.failure.raised_at; },
              "Where in the program a failure was raised, from the traceback beside its message; null without one.")
          .Add(
              "failure", [](const auto& of) -> const auto& { return of.failure.recorded; },
              "Why the last out-of-memory error of a trace happened; null without one.")
          .Add(
              "pins", [](const auto& of) -> const auto& { return of.memory.pins; },
              "Which blocks keep free memory from being used or returned, at that moment.")
          .Add("program", &Explanation::program, "Its steps and phases, and what each step leaves behind.")
          .Add(
              "causes", [](const auto& of) -> const auto& { return of.why.causes; },
              "Every cause looked for: found ones first, by the bytes that their cure frees times how sure they are; "
              "then absent ones; then those the input cannot show.")
          .Add(
              "program_remedies", [](const auto& of) -> const auto& { return of.why.remedies; },
              "What the program itself can change, for causes found as likely or proven where something needs a "
              "change; in the order of the causes.")
          .Add(
              "fidelity", [](const auto& of) -> const auto& { return of.what_ifs.fidelity; },
              "How exactly the recorded settings reproduce the record; null without a recorded allocation.")
          .AddNonEmpty(
              "replayed_as", [](const auto& of) -> const auto& { return of.what_ifs.replayed_as; },
              "Version, order of free blocks and what spoke for them; null without a replay.")
          .Add(
              "what_if_capacity_bytes", [](const auto& of) -> const auto& { return of.what_ifs.capacity_bytes; },
              "Bytes the allocator could have in every row of what_if; null: not known, never runs out.")
          .Add("what_if", &TriedSettings,
               "The same requests replayed from an empty allocator under each setting, the baseline's row first.")
          .Add(
              "paste", [](const auto& of) -> const auto& { return of.what_ifs.advice.paste; },
              "Line for the shell; null where no setting helps.")
          .AddNonEmpty(
              "advice", [](const auto& of) -> const auto& { return of.what_ifs.advice.sentence; },
              "What that line would do, or that no setting helps.")
          .Add(
              "own_allocator", [](const auto& of) -> const auto& { return of.what_ifs.own; },
              "What Ashlar's own allocator would have done; null where nothing failed or was returned to serve a "
              "request, or a setting mends it.")
          .Add(
              "run_again", [](const auto& of) -> const auto& { return of.what_ifs.run_again; },
              "The program itself, run again by a dry run under a setting that gets past its failed request; null "
              "where it was not.")
          .Add("elsewhere", &Explanation::elsewhere,
               "Whether the run would fit another device that was asked about; null where none was.")
          .AddNonEmpty(
              "next_step", [](const auto& of) -> const auto& { return of.verdict.next.sentence; }, "How to learn more.")
          .Add(
              "next_lines", [](const auto& of) -> const auto& { return of.verdict.next.lines; },
              "Lines of Python for the next step, or a command.")
          .Add("actions", &answers::SuggestionsOf,
               "What to do, at most three, the surest first; empty: nothing is known to help.")
          .Add("notes", &Explanation::notes, "What was guessed, skipped or is not known."));
  return *fields;
}

Json ExplanationJson(const answers::Explanation& e) { return JsonOf(e); }

std::string ExplainSchema() {
  Definitions definitions;
  const Json one = ValueOf<answers::Explanation>::Schema(definitions);
  Json one_or_all;
  one_or_all["anyOf"] = Json::Array({one, ArrayOf(one)});
  return SchemaText("explain",
                    "One explanation, or an array of them where a text holds several out-of-memory messages, or "
                    "several files were given. Sizes are bytes; null means that the input does not tell.",
                    one_or_all, definitions);
}

std::string ToJson(const std::vector<answers::Explanation>& explanations, bool as_list) {
  const Json out = explanations.size() == 1 && !as_list ? JsonOf(explanations.front()) : JsonOf(explanations);
  return out.ToText();
}

}  // namespace ashlar::report
