// The report of a dry run as JSON: what each key is, in one place with its schema.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/fields.h"
#include "launcher/dry_run_report.h"

namespace ashlar::cli {
namespace {

constexpr const char* kEndedBy[] = {"exit_code", "signal", "exception", "process"};

const char* EndedByName(EndedBy by) { return kEndedBy[static_cast<int>(by)]; }

std::optional<bool> FitsOf(FitState fit) {
  return fit == FitState::kUnknown ? std::nullopt : std::optional(fit == FitState::kFits);
}

// Parts of the report that are worked out of it, or say something of the whole as well.
struct MadeUpSum {
  std::uint64_t total;
  std::vector<MadeUpValue> lines;
};
struct ShownOutcome {
  const CardOutcome& outcome;
  bool has_verdict;
};
struct TableAndRuns {
  const CardTable& table;
  const CardRuns& runs;
};
struct ShownExplanation {
  const answers::Explanation& explanation;
};

std::optional<ShownOutcome> OutcomeOf(const CardRow& row, const std::optional<CardOutcome>& outcome) {
  return outcome.has_value() ? std::optional(ShownOutcome{*outcome, row.HasVerdict()}) : std::nullopt;
}

}  // namespace
}  // namespace ashlar::cli

namespace ashlar::report {
namespace {

// How a figure is known.
const std::vector<absl::string_view> kMarks = {"measured", "published", "assumed", "given"};
const std::vector<absl::string_view> kAccountMarks = {"measured", "computed", "published", "assumed", "given"};

}  // namespace

// Its schema is a file of its own.
template <>
struct ValueOf<cli::ShownExplanation> {
  static Json ToJson(const cli::ShownExplanation& of) { return ExplanationJson(of.explanation); }
  static Json Schema(Definitions&) { return {{"$ref", "explain.schema.json#/$defs/explanation"}}; }
};

template <>
const Fields<cli::Ended>& FieldsOf<cli::Ended>() {
  using cli::Ended;
  static const auto* fields = new Fields<Ended>(
      Fields<Ended>("ended")
          .AddWord(
              "by", [](const auto& of) { return cli::EndedByName(of.by); },
              WordsUpTo(cli::EndedBy::kProcess, &cli::EndedByName),
              "What kind of end it was; process: one of several was killed or aborted, and the program ended with "
              "0.")
          .Add("what", &Ended::what, "In words, such as 'signal 9 (SIGKILL)' or 'ValueError: no such file'."));
  return *fields;
}

template <>
const Fields<cli::MachineValue>& FieldsOf<cli::MachineValue>() {
  using cli::MachineValue;
  static const auto* fields =
      new Fields<MachineValue>(Fields<MachineValue>("value")
                                   .Add("bytes", &MachineValue::bytes, "The value.")
                                   .AddWord("mark", &MachineValue::mark, kMarks, "How it is known.")
                                   .Add("source", &MachineValue::source, "Where it is from."));
  return *fields;
}

template <>
const Fields<cli::HollowMachine>& FieldsOf<cli::HollowMachine>() {
  using cli::HollowMachine;
  static const auto* fields = new Fields<HollowMachine>(
      Fields<HollowMachine>("machine")
          .AddNonEmpty("card", &HollowMachine::card, "Its name in the table of GPUs; null where none was named.")
          .Add("devices", &HollowMachine::device_count, "How many of them.")
          .Add("has_limit", &HollowMachine::has_limit, "Whether memory can run out.")
          .Add("total", &HollowMachine::total, "Memory of a device, as cudaMemGetInfo gives it.")
          .Add("context", &HollowMachine::context, "What a process's CUDA context takes of it."));
  return *fields;
}

template <>
const Fields<cli::LibraryBytes>& FieldsOf<cli::LibraryBytes>() {
  using Library = cli::LibraryBytes;
  static const auto* fields = new Fields<Library>(
      Fields<Library>("library")
          .AddNonEmpty("name", &Library::name,
                       "Of its file, such as libc10_cuda.so, which is PyTorch's allocator; null where it is not known.")
          .Add("bytes", &Library::bytes, "As it asked for them."));
  return *fields;
}

template <>
const Fields<cli::AccountedDevice>& FieldsOf<cli::AccountedDevice>() {
  using Device = cli::AccountedDevice;
  static const auto* fields =
      new Fields<Device>(Fields<Device>("device")
                             .AddCount("ordinal", &Device::ordinal, "As CUDA counts them.")
                             .Add("total_bytes", &Device::total_bytes, "Its memory.")
                             .Add("context_bytes", &Device::context_bytes, "Of each process.")
                             .Add("peak_bytes", &Device::peak_bytes, "Of all processes on it, contexts included.")
                             .Add("used_at_end_bytes", &Device::used_at_end_bytes, "When this process ended.")
                             .Add("out_of_memory", &Device::out_of_memory,
                                  "Calls of this process that found no memory; PyTorch tries again after one.")
                             .Add("libraries", &Device::libraries,
                                  "By the library that called: what this process had asked for when that was most. "
                                  "Most bytes first."));
  return *fields;
}

template <>
const Fields<cli::ProcessAccounting>& FieldsOf<cli::ProcessAccounting>() {
  using Books = cli::ProcessAccounting;
  static const auto* fields = new Fields<Books>(
      Fields<Books>("books")
          .Add("devices", &Books::devices, "Those that it used.")
          .Add("pinned_peak_bytes", &Books::pinned_peak_bytes, "Pinned memory of the host.")
          .Add("launches", &Books::launches, "Pieces of work given to devices: none was run.")
          .Add("found_done", &Books::found_done,
               "Queries of events that were answered 'done' though nothing had waited for the work: without lag it is "
               "done at once."));
  return *fields;
}

template <>
const Fields<cli::TorchDevice>& FieldsOf<cli::TorchDevice>() {
  using cli::TorchDevice;
  static const auto* fields = new Fields<TorchDevice>(
      Fields<TorchDevice>("torch_device")
          .AddCount("index", &TorchDevice::index, "As PyTorch counts them.")
          .Add("peak_allocated_bytes", &TorchDevice::peak_allocated_bytes, "torch.cuda.max_memory_allocated().")
          .Add("peak_reserved_bytes", &TorchDevice::peak_reserved_bytes, "torch.cuda.max_memory_reserved().")
          .Add("ooms", &TorchDevice::num_ooms, "num_ooms of its statistics.")
          .Add("retries", &TorchDevice::num_alloc_retries, "num_alloc_retries of its statistics."));
  return *fields;
}

template <>
const Fields<cli::TorchInfo>& FieldsOf<cli::TorchInfo>() {
  using cli::TorchInfo;
  static const auto* fields = new Fields<TorchInfo>(
      Fields<TorchInfo>("torch")
          .Add("version", &TorchInfo::version, "Of PyTorch.")
          .AddNonEmpty("exception", &TorchInfo::exception, "That ended the process; null where none did.")
          .AddNonEmpty("not_kept", &TorchInfo::not_kept,
                       "Why there is no history of its allocator, as backend:cudaMallocAsync has none; null where "
                       "there is one.")
          .Add("devices", &TorchInfo::devices, "Those that it allocated on."));
  return *fields;
}

template <>
const Fields<cli::JaxDevice>& FieldsOf<cli::JaxDevice>() {
  using cli::JaxDevice;
  static const auto* fields =
      new Fields<JaxDevice>(Fields<JaxDevice>("jax_device")
                                .AddCount("index", &JaxDevice::index, "As JAX counts them.")
                                .Add("peak_in_use_bytes", &JaxDevice::peak_in_use_bytes,
                                     "peak_bytes_in_use of memory_stats() at the end: what the program needs.")
                                .Add("reserved_bytes", &JaxDevice::reserved_bytes, "What JAX had of the device.")
                                .Add("limit_bytes", &JaxDevice::limit_bytes, "bytes_limit: what it may have."));
  return *fields;
}

template <>
const Fields<cli::JaxInfo>& FieldsOf<cli::JaxInfo>() {
  using cli::JaxInfo;
  static const auto* fields =
      new Fields<JaxInfo>(Fields<JaxInfo>("jax")
                              .Add("devices", &JaxInfo::devices, "Those that it used.")
                              .AddNonEmpty("out_of_memory", &JaxInfo::out_of_memory,
                                           "The error of memory that ended the program; null where none did."));
  return *fields;
}

template <>
const Fields<cli::VllmInfo>& FieldsOf<cli::VllmInfo>() {
  using cli::VllmInfo;
  static const auto* fields = new Fields<VllmInfo>(
      Fields<VllmInfo>("vllm")
          .Add("weights_bytes", &VllmInfo::weights_bytes, "Of the model.")
          .Add("activations_bytes", &VllmInfo::activations_bytes, "Of a step, at most.")
          .Add("graphs_bytes", &VllmInfo::graphs_bytes, "Of CUDA graphs, as it estimates them.")
          .Add("kv_cache_bytes", &VllmInfo::kv_cache_bytes, "What it took for its KV cache.")
          .Add("requested_bytes", &VllmInfo::requested_bytes, "Of the device, by its gpu_memory_utilization.")
          .AddCount("tokens", &VllmInfo::tokens, "That its KV cache has room for; 0: not told.")
          .AddCount("longest_request", &VllmInfo::longest_request, "Tokens of a request at most: max_model_len.")
          .AddCount("most_requests", &VllmInfo::most_requests, "Requests at once at most: max_num_seqs."));
  return *fields;
}

template <>
const Fields<cli::SglangInfo>& FieldsOf<cli::SglangInfo>() {
  using cli::SglangInfo;
  static const auto* fields = new Fields<SglangInfo>(
      Fields<SglangInfo>("sglang")
          .Add("weights_bytes", &SglangInfo::weights_bytes, "Of the model.")
          .Add("kv_cache_bytes", &SglangInfo::kv_cache_bytes, "What it took for its KV cache.")
          .Add("requested_bytes", &SglangInfo::requested_bytes, "Of the device, by its mem_fraction_static.")
          .AddCount("tokens", &SglangInfo::tokens, "That its KV cache has room for."));
  return *fields;
}

template <>
const Fields<cli::ProcessRun>& FieldsOf<cli::ProcessRun>() {
  using cli::ProcessRun;
  static const auto* fields = new Fields<ProcessRun>(
      Fields<ProcessRun>("process")
          .AddCount("pid", &ProcessRun::pid, "The process's number.")
          .AddCount("rank", &ProcessRun::rank, "Of a job of several.")
          .Add(
              "out_of_memory", [](const auto& run) { return run.OutOfMemory(); },
              "Requests of the program that failed; of one without PyTorch the calls that did.")
          .Add(
              "died", [](const auto& run) { return run.DiedEarly(); },
              "Whether it was killed or aborted while it held memory of a device.")
          .Add("books", &ProcessRun::books, "Of the preloaded library; null where the process was killed.")
          .Add("torch", &ProcessRun::torch, "What PyTorch's allocator says; null without PyTorch.")
          .Add("jax", &ProcessRun::jax, "What JAX's allocator says at the end; null without JAX.")
          .Add("vllm", &ProcessRun::vllm, "What vLLM measured and counts of itself; null where it did not.")
          .Add("sglang", &ProcessRun::sglang, "What SGLang counted of itself; null where it did not."));
  return *fields;
}

template <>
const Fields<cli::ShownOutcome>& FieldsOf<cli::ShownOutcome>() {
  using Shown = cli::ShownOutcome;
  static const auto* fields = new Fields<Shown>(
      Fields<Shown>("outcome")
          .Add(
              "conf", [](const auto& of) { return of.outcome.conf; }, "As for PYTORCH_CUDA_ALLOC_CONF.")
          .Add(
              "fits",
              [](const auto& of) {
                return of.has_verdict ? std::optional(of.outcome.headroom_bytes.has_value()) : std::nullopt;
              },
              "Whether no request fails; null where there is no verdict.")
          .Add(
              "headroom_bytes", [](const auto& of) { return of.outcome.headroom_bytes; },
              "Between the peak of reserved memory and allocator_bytes; null where a request fails.")
          .Add(
              "retries", [](const auto& of) { return of.outcome.retries; }, "How often the cache had to be given back.")
          .Add(
              "failed_step", [](const auto& of) { return of.outcome.failed_step; },
              "The step of the first request that fails, from 1.")
          .Add(
              "failed_at",
              [](const auto& of) {
                return of.outcome.headroom_bytes.has_value() ? std::nullopt : std::optional(of.outcome.failed_at);
              },
              "Where that is, in words."));
  return *fields;
}

template <>
const Fields<answers::CardRow>& FieldsOf<answers::CardRow>() {
  using Row = answers::CardRow;
  static const auto* fields = new Fields<Row>(
      Fields<Row>("card")
          .Add(
              "card", [](const auto& row) { return row.gpu->name; }, "Its name in the table of GPUs.")
          .Add(
              "capability", [](const auto& row) { return gpus::CapabilityText(row.gpu->capability()); },
              "Its compute capability, such as '8.6'.")
          .Add(
              "ran_as", [](const auto& row) { return row.ran_as.name; },
              "The card that the program was run as: the row has the requests of that run.")
          .Add(
              "has_verdict", [](const auto& row) { return row.HasVerdict(); },
              "Whether that card has this one's compute capability. Where it has another, this card may take other "
              "kernels and other memory, and the outcomes say only what the card that ran would do with as much "
              "memory.")
          .Add("has_kernels", &Row::has_kernels,
               "Whether the program's PyTorch was built for it; null where that is not known. False: it would fit, and "
               "not run.")
          .Add(
              "total_bytes", [](const auto& row) { return row.gpu->total_bytes.value; }, "Its memory.")
          .Add("allocator_bytes", &Row::allocator_bytes, "Without its context and what is outside.")
          .Add("peak_allocated_bytes", &Row::peak_allocated_bytes,
               "Live blocks of that run at most: with less nothing fits.")
          .Add(
              "default", [](const auto& row) { return cli::ShownOutcome{row.by_default, row.HasVerdict()}; },
              "Under the default settings.")
          .Add(
              "expandable", [](const auto& row) { return cli::OutcomeOf(row, row.expandable); },
              "With expandable segments; null where the release has none, or there is no verdict.")
          .Add(
              "best_found", [](const auto& row) { return cli::OutcomeOf(row, row.best); },
              "Under the best settings found; null where live blocks alone take more, or there is no verdict."));
  return *fields;
}

template <>
const Fields<cli::CardRun>& FieldsOf<cli::CardRun>() {
  static const auto* fields = new Fields<cli::CardRun>(
      Fields<cli::CardRun>("card_run")
          .Add(
              "card", [](const auto& run) { return run.gpu->name; }, "Its name in the table of GPUs.")
          .Add(
              "capability", [](const auto& run) { return gpus::CapabilityText(run.gpu->capability()); },
              "Its compute capability: all cards of it have a verdict by this run.")
          .AddNonEmpty("why_not", &cli::CardRun::why_not, "Why the run tells nothing; null where it does."));
  return *fields;
}

template <>
const Fields<cli::CardRuns>& FieldsOf<cli::CardRuns>() {
  using cli::CardRuns;
  static const auto* fields = new Fields<CardRuns>(
      Fields<CardRuns>("cards")
          .Add("runs", &CardRuns::runs, "As which cards the program was run again.")
          .AddNonEmpty("why_no_runs", &CardRuns::why_none,
                       "Why it was not run again; null where it was, or there was no other card to run it as.")
          .Add("kept_away", &CardRuns::kept_away, "Files that it would have written again, and did not.")
          .Add("not_sent", &CardRuns::not_sent, "What it would have connected to again, and did not: HOST:PORT."));
  return *fields;
}

template <>
const Fields<answers::CardTable>& FieldsOf<answers::CardTable>() {
  using Table = answers::CardTable;
  static const auto* fields = new Fields<Table>(
      Fields<Table>("cards")
          .Add("is_replayed", &Table::is_replayed,
               "True: histories were replayed at each size. False, of native programs: the peak of the device's "
               "accounting was held against each card.")
          .Add("outside_bytes", &Table::outside_bytes, "Of the device, neither the context's nor the allocator's.")
          .Add("peak_allocated_bytes", &Table::peak_allocated_bytes, "Live blocks of the first run at most.")
          .Add("replays", &Table::replays, "How many it took.")
          .Add("rows", &Table::rows, "Least memory first."));
  return *fields;
}

template <>
const Fields<cli::TableAndRuns>& FieldsOf<cli::TableAndRuns>() {
  const auto table = [](const auto& of) -> const answers::CardTable& { return of.table; };
  static const auto* fields = new Fields<cli::TableAndRuns>(
      Fields<cli::TableAndRuns>("cards")
          .AddFrom(FieldsOf<answers::CardTable>().AllBut("cards", {"rows"}), table)
          .AddFrom(FieldsOf<cli::CardRuns>(), [](const auto& of) -> const cli::CardRuns& { return of.runs; })
          .AddFrom(FieldsOf<answers::CardTable>().Only("cards", {"rows"}), table));
  return *fields;
}

template <>
const Fields<cli::MadeUpValue>& FieldsOf<cli::MadeUpValue>() {
  using cli::MadeUpValue;
  static const auto* fields = new Fields<MadeUpValue>(Fields<MadeUpValue>("made_up_line")
                                                          .Add("line", &MadeUpValue::line, "Of the program.")
                                                          .Add("count", &MadeUpValue::count, "How many values it read.")
                                                          .Add("bytes", &MadeUpValue::bytes, "Of all of them."));
  return *fields;
}

template <>
const Fields<cli::MadeUpSum>& FieldsOf<cli::MadeUpSum>() {
  using cli::MadeUpSum;
  static const auto* fields =
      new Fields<MadeUpSum>(Fields<MadeUpSum>("made_up")
                                .Add("total", &MadeUpSum::total, "How many: control flow may depend on them.")
                                .Add("lines", &MadeUpSum::lines, "Most first."));
  return *fields;
}

template <>
const Fields<cli::GivenValue>& FieldsOf<cli::GivenValue>() {
  using cli::GivenValue;
  static const auto* fields = new Fields<GivenValue>(
      Fields<GivenValue>("given_value")
          .Add("flag", &GivenValue::flag, "As given: FILE:LINE=VALUE.")
          .Add("reads", &GivenValue::reads, "How often the line read it; 0: the line read no value of a device.")
          .AddNonEmpty("why_not", &GivenValue::why_not,
                       "Why a read of the line was not given it, such as of a type that cannot hold it; else null."));
  return *fields;
}

template <>
const Fields<cli::ReadingLine>& FieldsOf<cli::ReadingLine>() {
  using cli::ReadingLine;
  static const auto* fields =
      new Fields<ReadingLine>(Fields<ReadingLine>("reading_line")
                                  .Add("line", &ReadingLine::line, "Of the program.")
                                  .Add("count", &ReadingLine::count, "How many values it read."));
  return *fields;
}

template <>
const Fields<cli::Assumption>& FieldsOf<cli::Assumption>() {
  using cli::Assumption;
  static const auto* fields =
      new Fields<Assumption>(Fields<Assumption>("assumption")
                                 .Add("what", &Assumption::what, "What was taken for granted.")
                                 .Add("bytes", &Assumption::bytes, "Its size; null where it is none.")
                                 .AddWord("mark", &Assumption::mark, kMarks, "How it is known.")
                                 .Add("source", &Assumption::source, "Where it is from, or why it is not known."));
  return *fields;
}

template <>
const Fields<cli::AccountPart>& FieldsOf<cli::AccountPart>() {
  using Part = cli::AccountPart;
  static const auto* fields =
      new Fields<Part>(Fields<Part>("account_part")
                           .Add("name", &Part::name, "Whose it is: PyTorch's allocator, CUDA context, NCCL.")
                           .Add(
                               "least_bytes", [](const auto& of) { return of.bytes.least_bytes; }, "It takes so much.")
                           .Add(
                               "most_bytes", [](const auto& of) { return of.bytes.most_bytes; },
                               "And perhaps as much as this; the same where it is known.")
                           .Add("in_peak", &Part::is_in_peak, "Whether peak_bytes has it; else it comes on top.")
                           .AddWord("mark", &Part::mark, kAccountMarks,
                                    "How it is known; computed: by the library's own rules and what the run called.")
                           .Add("source", &Part::source, "Where it is from."));
  return *fields;
}

template <>
const Fields<cli::DeviceAccount>& FieldsOf<cli::DeviceAccount>() {
  using Account = cli::DeviceAccount;
  static const auto* fields = new Fields<Account>(
      Fields<Account>("account")
          .AddCount("device", &Account::ordinal, "The one that takes most, as CUDA counts them.")
          .Add("peak_bytes", &Account::peak_bytes, "Of all processes on it, contexts included.")
          .Add(
              "beside_least_bytes", [](const auto& of) { return of.Beside().least_bytes; },
              "What libraries take on top on a GPU, at least.")
          .Add(
              "beside_most_bytes", [](const auto& of) { return of.Beside().most_bytes; }, "And at most.")
          .Add("parts", &Account::parts, "First those of the peak; most bytes first."));
  return *fields;
}

template <>
const Fields<cli::Condition>& FieldsOf<cli::Condition>() {
  using cli::Condition;
  static const auto* fields =
      new Fields<Condition>(Fields<Condition>("condition")
                                .Add("who", &Condition::who, "NCCL, or libraries where none alone decides.")
                                .Add("bytes", &Condition::bytes, "With more than this it does not fit."));
  return *fields;
}

template <>
const Fields<cli::RankRole>& FieldsOf<cli::RankRole>() {
  using Role = cli::RankRole;
  static const auto* fields = new Fields<Role>(
      Fields<Role>("role")
          .AddCount("rank", &Role::rank, "That was run.")
          .Add("what", &Role::what, "Which of the ranks it is: a stage of a pipeline, the last of a group.")
          .Add("stands_for", &Role::stands_for,
               "The ranks that are taken to take as much, this one among them; empty where it was run to compare and "
               "is like another.")
          .Add(
              "fits", [](const auto& of) { return cli::FitsOf(of.fit); }, "As fits of the whole.")
          .Add("peak_bytes", &Role::peak_bytes, "Of its device, contexts included.")
          .Add("peak_allocated_bytes", &Role::allocated_bytes, "Of PyTorch's allocator; 0 without PyTorch.")
          .Add(
              "beside_least_bytes", [](const auto& of) { return of.beside.least_bytes; },
              "What libraries take on top on a GPU, at least.")
          .Add(
              "beside_most_bytes", [](const auto& of) { return of.beside.most_bytes; }, "And at most.")
          .Add("communicators", &Role::communicators, "Of NCCL, that were there together.")
          .AddNonEmpty("why_not", &Role::why_not, "Why it did not come to its end; null where it did."));
  return *fields;
}

template <>
const Fields<cli::RankRuns>& FieldsOf<cli::RankRuns>() {
  using Runs = cli::RankRuns;
  static const auto* fields = new Fields<Runs>(
      Fields<Runs>("ranks")
          .AddCount("ranks", &Runs::ranks, "Of the world.")
          .AddCount("ranks_per_node", &Runs::per_node, "On each machine.")
          .AddCount(
              "decides",
              [](const auto& of) { return of.roles.empty() ? std::nullopt : std::optional(of.roles[of.worst].rank); },
              "The rank that the rest of the report is of; null where no roles were run.")
          .AddNonEmpty("why_no_roles", &Runs::why_none, "Why no others were run; null where they were.")
          .Add("roles", &Runs::roles, "In the order of their runs.")
          .Add("compared", &Runs::compared, "What was held against each other, a line each.")
          .Add("assumed", &Runs::assumed, "What is taken to be symmetric, a line each."));
  return *fields;
}

template <>
const Fields<cli::RefusedCall>& FieldsOf<cli::RefusedCall>() {
  using cli::RefusedCall;
  static const auto* fields =
      new Fields<RefusedCall>(Fields<RefusedCall>("call")
                                  .Add("name", &RefusedCall::name, "Of the function.")
                                  .Add("count", &RefusedCall::count, "How often it was called."));
  return *fields;
}

template <>
const Fields<libraries::CudnnUse>& FieldsOf<libraries::CudnnUse>() {
  using Use = libraries::CudnnUse;
  static const auto* fields = new Fields<Use>(
      Fields<Use>("cudnn_workspaces")
          .Add("plans", &Use::plans, "Of cuDNN's graph interface that differ, of all processes.")
          .Add("answered", &Use::answered, "Of these: they had the workspace that the library named; the others 0.")
          .Add("largest_bytes", &Use::most_bytes, "The largest workspace.")
          .Add("version", &Use::version, "Of the library, such as 92400; 0: not known.")
          .AddNonEmpty("why_not", &Use::why_not, "Why a plan had no answer; null where that was not told."));
  return *fields;
}

template <>
const Fields<cli::RunReport>& FieldsOf<cli::RunReport>() {
  using cli::RunReport;
  static const auto* fields = new Fields<RunReport>(
      Fields<RunReport>("dry_run")
          .Add("program", &RunReport::program, "What was run, with its arguments.")
          .AddCount("exit_code", &RunReport::exit_code, "Its own; 128 + N where signal N ended it.")
          .Add(
              "fits", [](const auto& of) { return cli::FitsOf(cli::FitOf(of)); },
              "False: a request found no memory. True: none did, and the program came to its end. Null: no process "
              "used a device, or the program ended before its end.")
          .Add("fits_unless", &cli::FitsUnless,
               "Where fits is true and libraries may take more than there is to spare: which, and how much is too "
               "much; else null.")
          .Add("ended_early", &cli::EndedEarly,
               "With what the program ended before its end; null where it ended with exit code 0 and no process died. "
               "peak_bytes is then what was seen until then.")
          .Add("peak_bytes", &cli::PeakBytes, "Of the device that held most, contexts included.")
          .Add("machine", &RunReport::machine, "What it ran on.")
          .Add("ranks", &RunReport::ranks,
               "Under --ranks, the roles that were run; the other keys are then of the one that decides. Else null.")
          .Add(
              "processes", [](const auto& of) { return of.results.runs; }, "By rank, then by number.")
          .Add(
              "cards",
              [](const auto& of) {
                return of.cards.has_value() ? std::optional(cli::TableAndRuns{*of.cards, of.card_runs}) : std::nullopt;
              },
              "Which card is enough; null where the devices had a limit or there is no history.")
          .Add(
              "made_up", [](const auto& of) { return cli::MadeUpSum{cli::MadeUpTotal(of), cli::MadeUpValues(of)}; },
              "Reads of what only a kernel would have written.")
          .Add("given_values", &cli::GivenValues, "What came of each --value, in their order.")
          .Add("value_reads", &cli::ReadingLines,
               "Under --value, the lines of the program that read values of the device, known ones among them.")
          .Add(
              "account", [](const auto& of) { return cli::AccountOf(of); },
              "Whose the memory of a device is, and what libraries take beside it; null: no process left its "
              "accounting.")
          .Add(
              "cudnn_workspaces",
              [](const auto& of) { return of.has_workspaces ? std::optional(cli::CudnnOf(of.results)) : std::nullopt; },
              "Under --workspaces cudnn, what plans had; else null.")
          .Add("assumptions", &cli::Assumptions, "What else was taken for granted.")
          .Add("not_supported", &cli::RefusedCalls, "Calls that were answered so, most first.")
          .AddCount(
              "explained_pid",
              [](const auto& of) {
                return of.explanation.has_value() ? std::optional(of.explained->pid) : std::nullopt;
              },
              "Whose history is explained.")
          .Add(
              "explanation",
              [](const auto& of) {
                return of.explanation.has_value() ? std::optional(cli::ShownExplanation{*of.explanation})
                                                  : std::nullopt;
              },
              "As ashlar explain --json has it.")
          .Add("notes", &RunReport::notes, "What could not be read, and what was kept."));
  return *fields;
}

}  // namespace ashlar::report

namespace ashlar::cli {

std::string ToJson(const RunReport& report) { return report::FieldsOf<RunReport>().ToJson(report).ToText(); }

std::string DryRunSchema() {
  return report::SchemaTextOf<RunReport>("dry-run",
                                         "What a dry run came to. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::cli
