#include "commands/explain/memory_fields.h"

#include <optional>

namespace ashlar::report {
namespace {

template <typename Int>
std::optional<Int> AboveZero(Int number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

template <typename Int>
std::optional<Int> OfGrowth(const analyses::HeldRow& row, Int analyses::HolderGrowth::*value) {
  return row.growth.has_value() ? std::optional((*row.growth).*value) : std::nullopt;
}

}  // namespace

template <>
const Fields<answers::OomAccounting>& FieldsOf<answers::OomAccounting>() {
  using answers::OomAccounting;
  static const auto* fields = new Fields<OomAccounting>(
      Fields<OomAccounting>("accounting")
          .Add("total_bytes", &OomAccounting::total_bytes, "Bytes of the device = reserved + outside + free.")
          .Add("allocated_bytes", &OomAccounting::allocated_bytes, "Bytes of the live blocks = live + rounding.")
          .Add("reserved_bytes", &OomAccounting::reserved_bytes,
               "Bytes of all segments = live + rounding + pending + stranded + whole_free + private_pool.")
          .Add("live_bytes", &OomAccounting::live_bytes, "Bytes the callers of the live blocks asked for.")
          .Add("rounding_bytes", &OomAccounting::rounding_bytes, "Bytes those blocks span beyond that.")
          .Add("pending_bytes", &OomAccounting::pending_bytes,
               "Bytes freed by the program, still waiting for work on another stream.")
          .Add("stranded_bytes", &OomAccounting::stranded_bytes, "Free bytes in segments that hold a block in use.")
          .Add("whole_free_bytes", &OomAccounting::whole_free_bytes,
               "Bytes of segments without a block in use: the cache can return them.")
          .Add("private_pool_bytes", &OomAccounting::private_pool_bytes, "Free bytes inside private pools.")
          .Add("outside_bytes", &OomAccounting::outside_bytes,
               "Bytes of the device that this allocator does not hold: CUDA context, libraries, other processes.")
          .Add("free_bytes", &OomAccounting::free_bytes, "Bytes that the device reported as free."));
  return *fields;
}

template <>
const Fields<answers::PeakFigures>& FieldsOf<answers::PeakFigures>() {
  using answers::PeakFigures;
  static const auto* fields = new Fields<PeakFigures>(
      Fields<PeakFigures>("peak")
          .Add("allocated_bytes", &PeakFigures::allocated_bytes, "Greatest sum of live blocks, bytes.")
          .Add("active_bytes", &PeakFigures::active_bytes, "Greatest sum of live and pending blocks, bytes.")
          .Add("reserved_bytes", &PeakFigures::reserved_bytes, "Greatest sum of segments, bytes.")
          .Add("utilisation", &PeakFigures::utilisation, "Peak allocated / peak reserved, a share of 1.")
          .AtLeast(0)
          .AtMost(1));
  return *fields;
}

template <>
const Fields<analyses::LabelledStack>& FieldsOf<analyses::LabelledStack>() {
  using analyses::LabelledStack;
  static const auto* fields = new Fields<LabelledStack>(
      Fields<LabelledStack>("stack")
          .Add("bytes", &LabelledStack::bytes, "Bytes of the blocks.")
          .Add("blocks", &LabelledStack::blocks, "Number of blocks.")
          .Add("label", &LabelledStack::label, "File, line and function nearest to the program's own code."));
  return *fields;
}

template <>
const Fields<analyses::LiveSize>& FieldsOf<analyses::LiveSize>() {
  using analyses::LiveSize;
  static const auto* fields = new Fields<LiveSize>(
      Fields<LiveSize>("size")
          .Add("bytes", &LiveSize::bytes, "Bytes of the blocks.")
          .Add("blocks", &LiveSize::blocks, "Number of blocks.")
          .Add("block_bytes", &LiveSize::block_bytes, "Bytes of each of them.")
          .Add("stream", [](const auto& of) { return Handle(of.stream); }, "The stream that they are of."));
  return *fields;
}

template <>
const Fields<trace::Holder>& FieldsOf<trace::Holder>() {
  using trace::Holder;
  static const auto* fields = new Fields<Holder>(
      Fields<Holder>("holder_name")
          .Add("kind", &Holder::kind,
               "As names.schema.json has it: parameter, optimizer_state, graph, local, cycle, not_found and others.")
          .Add("name", &Holder::name, "As a person would say it: losses[], model.layers.*.weight.")
          .AddNonEmpty("file", &Holder::file,
                       "Of the variable's scope; of what nobody holds, where it was allocated; null: not known.")
          .Add(
              "line", [](const auto& of) { return AboveZero(of.line); }, "Where that scope stands; null: not known.")
          .AtLeast(1)
          .AddNonEmpty("function", &Holder::function, "That function; null: none, or not known."));
  return *fields;
}

template <>
const Fields<analyses::HeldRow>& FieldsOf<analyses::HeldRow>() {
  using analyses::HeldRow;
  using analyses::HolderGrowth;
  static const auto* fields = new Fields<HeldRow>(
      Fields<HeldRow>("holder")
          .AddFrom(FieldsOf<trace::Holder>(), [](const auto& of) -> const trace::Holder& { return of.holder; })
          .Add(
              "nodes", [](const auto& of) { return AboveZero(of.holder.nodes); },
              "Nodes of its graph; null: it is none.")
          .AtLeast(1)
          .Add("bytes", &HeldRow::bytes, "Requested bytes of its blocks.")
          .Add("blocks", &HeldRow::blocks, "Number of them.")
          .Add(
              "since_step", [](const auto& of) { return OfGrowth(of, &HolderGrowth::since_step); },
              "Of a holder that grows: the first step whose blocks it still holds, from 1; null: it does not grow, or "
              "the trace does not say.")
          .AtLeast(1)
          .Add(
              "steps", [](const auto& of) { return OfGrowth(of, &HolderGrowth::steps); },
              "How many steps' blocks it holds; null likewise.")
          .AtLeast(3)
          .Add(
              "bytes_per_step", [](const auto& of) { return OfGrowth(of, &HolderGrowth::bytes_per_step); },
              "Of each of them, on average; null likewise."));
  return *fields;
}

template <>
const Fields<analyses::HeldByName>& FieldsOf<analyses::HeldByName>() {
  using analyses::HeldByName;
  static const auto* fields = new Fields<HeldByName>(
      Fields<HeldByName>("held")
          .Add("when", &HeldByName::when, "The moment at which the program's objects were looked at.")
          .Add("live_bytes", &HeldByName::live_bytes, "Requested bytes of the live blocks: the sum of all holders.")
          .Add("named_bytes", &HeldByName::named_bytes, "Of them, those that somebody holds.")
          .AddNonEmpty("bound", &HeldByName::bound,
                       "What ended the look early, time or objects: some names are missing; null: nothing.")
          .Add("not_live_blocks", &HeldByName::not_live, "Blocks with a name that were not live then.")
          .Add("holders", &HeldByName::rows, "Most bytes first; each live block has one."));
  return *fields;
}

template <>
const Fields<answers::LabelLine>& FieldsOf<answers::LabelLine>() {
  using answers::LabelLine;
  static const auto* fields = new Fields<LabelLine>(
      Fields<LabelLine>("label")
          .Add("label", &LabelLine::label, "The text, as the program gave it.")
          .AddWord(
              "kind", [](const auto& of) { return answers::LabelKindName(of.kind); },
              WordsUpTo(answers::LabelKind::kInternal, &answers::LabelKindName),
              "metadata: the thread's when the block was allocated, so that such lines share no block; annotation: put "
              "on the block later, a block counts in each of its own; internal: the allocator's mark.")
          .Add("bytes", &LabelLine::bytes, "Bytes of the blocks.")
          .Add("blocks", &LabelLine::blocks, "Number of blocks."));
  return *fields;
}

template <>
const Fields<answers::HostFigures>& FieldsOf<answers::HostFigures>() {
  using answers::HostFigures;
  static const auto* fields = new Fields<HostFigures>(
      Fields<HostFigures>("pinned_host")
          .Add("held_bytes", &HostFigures::held_bytes, "Bytes obtained from the system.")
          .Add("in_use_bytes", &HostFigures::in_use_bytes, "Bytes of these that the program uses.")
          .Add("peak_held_bytes", &HostFigures::peak_held_bytes,
               "The most held since recording began; null where events and state contradict each other.")
          .Add("peak_in_use_bytes", &HostFigures::peak_in_use_bytes,
               "The most in use since recording began; null as above.")
          .Add("blocks", &HostFigures::blocks, "Blocks in use.")
          .Add("events", &HostFigures::events, "Events recorded."));
  return *fields;
}

template <>
const Fields<answers::OwnedBytes>& FieldsOf<answers::OwnedBytes>() {
  using answers::OwnedBytes;
  static const auto* fields = new Fields<OwnedBytes>(
      Fields<OwnedBytes>("owned_bytes")
          .Add("owner", &OwnedBytes::owner, "NCCL, cuBLAS, the program (simulate), libmine.so.")
          .AddNonEmpty("file", &OwnedBytes::file, "Of the code that asked the device; null: not known.")
          .Add("bytes", &OwnedBytes::bytes, "Bytes of its allocations, as it asked for them.")
          .Add("blocks", &OwnedBytes::blocks, "Number of those."));
  return *fields;
}

template <>
const Fields<answers::ByLibrary>& FieldsOf<answers::ByLibrary>() {
  using answers::ByLibrary;
  static const auto* fields = new Fields<ByLibrary>(
      Fields<ByLibrary>("by_library")
          .Add("owners", &ByLibrary::owners,
               "Live allocations by the library whose code asked, most bytes first; beside PyTorch's allocator as the "
               "snapshot was made.")
          .Add("in_use_bytes", &ByLibrary::in_use_bytes,
               "Of the device, by all processes, as the driver said when the program had asked for most, or as it was "
               "at "
               "the failed request of PyTorch's allocator; null: not known.")
          .Add("rest_bytes", &ByLibrary::rest_bytes,
               "Of that, what the program had not asked for: its context and kernels, what pools hold, other "
               "processes."));
  return *fields;
}

template <>
const Fields<answers::LiveAtEnd>& FieldsOf<answers::LiveAtEnd>() {
  using answers::LiveAtEnd;
  static const auto* fields = new Fields<LiveAtEnd>(
      Fields<LiveAtEnd>("live_at_end")
          .Add("bytes", &LiveAtEnd::bytes, "Bytes of the allocations that were not freed.")
          .Add("blocks", &LiveAtEnd::blocks, "Number of those.")
          .Add("stacks", &LiveAtEnd::lines, "The lines that made them, most bytes first, five at the most."));
  return *fields;
}

}  // namespace ashlar::report
