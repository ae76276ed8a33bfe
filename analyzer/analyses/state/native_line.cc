#include "analyzer/analyses/state/native_line.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

}  // namespace ashlar::analyses
