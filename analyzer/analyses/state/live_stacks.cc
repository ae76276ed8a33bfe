#include "analyzer/analyses/state/live_stacks.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ashlar::analyses {
namespace {

using absl::string_view;

constexpr std::size_t kMostNativeFunctions = 3;  // in one line
constexpr string_view kAnonymous = "(anonymous namespace)";

string_view ModuleOf(const trace::Frame& frame) {
  const string_view file = frame.file;
  const std::size_t slash = file.rfind('/');
  return slash == string_view::npos ? file : file.substr(slash + 1);
}

bool IsSource(string_view file) {
  static constexpr std::array<string_view, 8> kEndings = {".py", ".cpp", ".cc", ".c", ".cu", ".cuh", ".h", ".hpp"};
  return std::any_of(kEndings.begin(), kEndings.end(), [file](string_view end) { return absl::EndsWith(file, end); });
}

// What says nothing of who wanted the memory.
bool IsBetween(const trace::Frame& frame) {
  static constexpr std::array<string_view, 9> kFiles = {"libcu",     "libnv",    "libnccl",    "libc.so",   "libc-",
                                                        "libstdc++", "ld-linux", "libpthread", "libashlar_"};
  static constexpr std::array<string_view, 8> kSpaces = {
      "thrust::", "cub::", "cuda::", "rmm::", "std::", "__gnu_cxx::", "cccl::", "nvcuda::"};
  const string_view file = ModuleOf(frame);
  const std::string function = ShortFunction(frame.function);
  return std::any_of(kFiles.begin(), kFiles.end(), [file](string_view of) { return absl::StartsWith(file, of); }) ||
         std::any_of(kSpaces.begin(), kSpaces.end(),
                     [&function](string_view of) { return absl::StartsWith(function, of); });
}

// The innermost ones that say something, else the innermost of all.
std::vector<const trace::Frame*> Telling(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  std::vector<const trace::Frame*> out;
  for (const trace::FrameId id : frames) {
    const trace::Frame& frame = stacks.frame(id);
    if (out.size() == kMostNativeFunctions || (!out.empty() && out.back()->function == "main")) break;
    if (!IsBetween(frame)) out.push_back(&frame);
  }
  if (out.empty()) out.push_back(&stacks.frame(frames.front()));
  return out;
}

}  // namespace

bool IsNativeStack(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  return std::all_of(frames.begin(), frames.end(), [&stacks](trace::FrameId id) {
    const trace::Frame& frame = stacks.frame(id);
    return frame.line == 0 && absl::StartsWith(frame.file, "/") && !IsSource(frame.file);
  });
}

// Text in <> and behind the first ( is left out, and what stands before the name.
std::string ShortFunction(string_view function) {
  if (absl::StrContains(function, "operator")) return std::string(function);  // its name may hold such signs
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    if (depth == 0 && absl::StartsWith(function.substr(i), kAnonymous)) {
      absl::StrAppend(&out, kAnonymous);
      i += kAnonymous.size() - 1;
      continue;
    }
    const char c = function[i];
    if (c == '(' && depth == 0) break;
    depth += c == '<' ? 1 : 0;
    if (depth == 0 && c == ' ') out.clear();
    if (depth == 0 && c != ' ') out += c;
    depth -= c == '>' && depth > 0 ? 1 : 0;
  }
  return out.empty() ? std::string(function) : out;
}

std::string NativeLine(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  std::string out;
  for (const trace::Frame* frame : Telling(stacks, frames)) {
    const std::string before = out.empty() ? absl::StrCat(ModuleOf(*frame), " ") : " < ";
    absl::StrAppend(&out, before, ShortFunction(frame->function));
  }
  return out;
}

namespace {

bool IsPython(const trace::Frame& frame) { return absl::EndsWith(frame.file, ".py"); }

// How far a frame is from the user's own code: 0 their file, 1 an installed package, 2 the framework itself.
int Distance(const trace::Frame& frame) {
  if (absl::StrContains(frame.file, "/torch/") || absl::StrContains(frame.file, "\\torch\\")) return 2;
  if (absl::StrContains(frame.file, "/ashlar_hollow/")) return 2;  // stands in for the framework in a dry run
  if (absl::StrContains(frame.file, "/lib/python3.") || absl::StartsWith(frame.file, "<frozen ")) return 1;
  return absl::StrContains(frame.file, "site-packages") || absl::StrContains(frame.file, "dist-packages") ? 1 : 0;
}

std::string ShortPath(const std::string& path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// "model.py:12" of `  File "/home/ada/model.py", line 12, in forward`; empty for other lines.
std::string TracedLine(absl::string_view line, bool is_users) {
  constexpr absl::string_view kFile = "File \"", kLine = "\", line ";
  const std::size_t begin = line.find(kFile);
  const std::size_t end = begin == absl::string_view::npos ? begin : line.find(kLine, begin);
  if (end == absl::string_view::npos) return "";
  const trace::Frame frame{std::string(line.substr(begin + kFile.size(), end - begin - kFile.size())), "", 0};
  if (is_users && Distance(frame) > 0) return "";
  const absl::string_view number = line.substr(end + kLine.size());
  return absl::StrCat(ShortPath(frame.file), ":", number.substr(0, number.find_first_not_of("0123456789")));
}

// "linear_1 < model.py:12" of a line of generated code: the node, and the line that it was made from, the innermost of
// the user's own. Python prints the innermost last.
std::string FxLabel(const trace::FxNode& fx) {
  for (const bool is_users : {true, false}) {
    std::string found;
    for (const absl::string_view line : absl::StrSplit(fx.original_trace, '\n')) {
      if (std::string traced = TracedLine(line, is_users); !traced.empty()) found = std::move(traced);
    }
    if (!found.empty()) return absl::StrCat(fx.name, " < ", found);
  }
  return fx.name;
}

// The innermost of the Python frames that are nearest to the user's own code.
const trace::Frame* PythonFrame(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  const trace::Frame* best = nullptr;
  for (const trace::FrameId id : frames) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsPython(frame) && (best == nullptr || Distance(frame) < Distance(*best))) best = &frame;
  }
  return best;
}

// "MmBackward0" from "torch::autograd::generated::MmBackward0::apply(...)" and from
// "...::MmBackward0_apply_functional(". The namespace `details` is no node.
std::string NameAfter(const std::string& function, absl::string_view prefix) {
  const std::size_t at = function.find(prefix.data(), 0, prefix.size());
  if (at == std::string::npos) return "";
  const std::size_t begin = at + prefix.size();
  std::size_t end = begin;
  while (end < function.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(function[end])) || function[end] == '_'))
    ++end;
  const std::string name = function.substr(begin, end - begin);
  return name == "details" ? "" : std::string(absl::StripSuffix(name, "_apply_functional"));
}

// What a stack of C++ frames only was doing: the autograd node, else the operator.
std::string NativeLabel(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  for (const absl::string_view prefix :
       {"torch::autograd::generated::", "torch::autograd::generated::details::", "at::_ops::"}) {
    for (const trace::FrameId id : frames) {
      const std::string name = NameAfter(stacks.frame(id).function, prefix);
      if (!name.empty()) return absl::StrCat(name, " (no Python frame)");
    }
  }
  return FrameLabel(stacks.frame(frames.back()));
}

constexpr std::size_t kMostScopes = 6;  // in one label, as in the allocator's own error

// "layer < forward" of a stack of scopes, innermost first; empty for any other.
std::string ScopeLabel(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  std::vector<absl::string_view> names;
  for (const trace::FrameId id : frames) {
    const trace::Frame& frame = stacks.frame(id);
    if (frame.file != trace::kScopeFile) return "";
    if (names.size() < kMostScopes) names.push_back(frame.function);
  }
  return absl::StrJoin(names, " < ");
}

}  // namespace

std::string FrameLabel(const trace::Frame& frame) {
  std::string out = ShortPath(frame.file);
  if (frame.line > 0) absl::StrAppend(&out, ":", frame.line);
  return absl::StrCat(out, out.empty() ? "" : " ", frame.function);
}

std::vector<std::size_t> NearestFrames(absl::Span<const trace::Frame> frames) {
  std::vector<std::size_t> out;
  int nearest = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int distance = Distance(frames[i]);
    if (out.empty() || distance < nearest) {
      out.clear();
      nearest = distance;
    }
    if (distance == nearest) out.push_back(i);
  }
  return out;
}

std::vector<LiveStack> LiveStacks(const timeline::State& state) {
  std::map<trace::StackId, LiveStack> groups;
  for (const timeline::StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kLive) continue;
      LiveStack& group = groups[block.stack];
      group.stack = block.stack;
      group.bytes += block.size_bytes;
      ++group.blocks;
    }
  }
  std::vector<LiveStack> out;
  for (const auto& [stack, group] : groups) out.push_back(group);
  std::stable_sort(out.begin(), out.end(), [](const LiveStack& a, const LiveStack& b) { return a.bytes > b.bytes; });
  return out;
}

std::string StackLabel(const trace::StackTable& stacks, trace::StackId stack) {
  const absl::Span<const trace::FrameId> frames = stacks.stack(stack);
  if (frames.empty()) return kNoStackLabel;
  if (std::string scopes = ScopeLabel(stacks, frames); !scopes.empty()) return scopes;
  if (IsNativeStack(stacks, frames)) return NativeLine(stacks, frames);
  for (const trace::FrameId id : frames) {
    if (const trace::FxNode& fx = stacks.frame(id).fx; !fx.name.empty()) return FxLabel(fx);
  }
  const trace::Frame* python = PythonFrame(stacks, frames);
  return python != nullptr ? FrameLabel(*python) : NativeLabel(stacks, frames);
}

namespace {

// What runs other modules, and is none itself.
bool IsAroundModules(const trace::Frame& frame) {
  return absl::EndsWith(frame.file, "/modules/module.py") || absl::EndsWith(frame.file, "/modules/container.py");
}

// Below the line that a stack is labelled by, the frame that says most of its block: the optimizer that made it, else
// the innermost frame outside PyTorch, else the innermost module; nullptr: none.
const trace::Frame* InnerFrame(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  const trace::Frame* const label = PythonFrame(stacks, frames);
  const trace::Frame* module = nullptr;
  for (const trace::FrameId id : frames) {
    const trace::Frame& frame = stacks.frame(id);
    if (&frame == label) break;
    if (!IsPython(frame)) continue;
    if (absl::StrContains(frame.file, "/torch/optim/") || Distance(frame) < 2) return &frame;
    const bool is_module = absl::StrContains(frame.file, "/torch/nn/modules/") && !IsAroundModules(frame);
    if (module == nullptr && is_module) module = &frame;
  }
  return module;
}

struct LabelledGroup {
  LiveStack group;
  std::string label;
};

std::vector<LabelledStack> ByLabel(const std::vector<LabelledGroup>& groups) {
  std::map<std::string, LabelledStack> lines;
  for (const LabelledGroup& of : groups) {
    LabelledStack& line = lines[of.label];
    line.label = of.label;
    line.bytes += of.group.bytes;
    line.blocks += of.group.blocks;
  }
  std::vector<LabelledStack> out;
  for (auto& [label, line] : lines) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace

std::string PartLabel(const trace::StackTable& stacks, trace::StackId stack) {
  const absl::Span<const trace::FrameId> frames = stacks.stack(stack);
  const trace::Frame* const python = PythonFrame(stacks, frames);
  if (python == nullptr || StackLabel(stacks, stack) != FrameLabel(*python)) return "";
  const trace::Frame* const inner = InnerFrame(stacks, frames);
  return inner == nullptr ? "" : absl::StrCat(FrameLabel(*inner), " < ", FrameLabel(*python));
}

std::vector<LabelledStack> LiveLines(const timeline::State& state, const trace::StackTable& stacks, std::size_t most) {
  std::vector<LabelledGroup> groups;
  std::uint64_t bytes = 0;
  for (const LiveStack& group : LiveStacks(state)) {
    groups.push_back({group, StackLabel(stacks, group.stack)});
    bytes += group.bytes;
  }
  std::vector<LabelledStack> out = ByLabel(groups);
  if (!out.empty() && 2 * out.front().bytes > bytes) {
    for (LabelledGroup& of : groups) {
      if (of.label != out.front().label) continue;
      if (std::string part = PartLabel(stacks, of.group.stack); !part.empty()) of.label = std::move(part);
    }
    out = ByLabel(groups);
  }
  if (out.size() > most) out.resize(most);
  return out;
}

std::vector<LiveSize> LiveSizes(const timeline::State& state, std::size_t most) {
  std::map<std::pair<std::uint64_t, Stream>, LiveSize> groups;
  for (const timeline::StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kLive) continue;
      LiveSize& group = groups[{block.size_bytes, segment.stream}];
      group.block_bytes = block.size_bytes;
      group.stream = segment.stream;
      group.bytes += block.size_bytes;
      ++group.blocks;
    }
  }
  std::vector<LiveSize> out;
  for (const auto& [key, group] : groups) out.push_back(group);
  std::stable_sort(out.begin(), out.end(), [](const LiveSize& a, const LiveSize& b) { return a.bytes > b.bytes; });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace ashlar::analyses
