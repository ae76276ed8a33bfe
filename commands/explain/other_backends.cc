#include "commands/explain/other_backends.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace ashlar::answers {
namespace {

// What CUDA's texts say, and this backend's word for it. PyTorch for AMD's GPUs has CUDA's names.
using Words = std::vector<std::pair<absl::string_view, absl::string_view>>;

const Words& WordsOf(trace::Backend backend) {
  static const auto* xpu = new Words{{"torch.cuda.", "torch.xpu."},
                                     {"\"cuda\"", "\"xpu\""},
                                     {"'cuda'", "'xpu'"},
                                     {".cuda()", ".xpu()"},
                                     {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"},
                                     {"nvidia-smi", "xpu-smi ps"}};
  static const auto* hip = new Words{{"nvidia-smi", "rocm-smi --showpids"}};
  return backend == trace::Backend::kXpu ? *xpu : *hip;
}

class Translator {
 public:
  explicit Translator(trace::Backend backend) : words_(WordsOf(backend)) {}

  void operator()(std::string& text) const { absl::StrReplaceAll(words_, &text); }
  void operator()(std::vector<std::string>& texts) const {
    for (std::string& text : texts) (*this)(text);
  }

 private:
  const Words& words_;
};

// By PyTorch's pull request 177974, which release 2.11 has.
trace::Note NoteOnExpandable() {
  return {"expandable_on_rocm", "PyTorch for ROCm takes expandable_segments from 2.11 on, and leaves it out before", 1};
}

}  // namespace

void SayFor(trace::Backend backend, Explanation& explanation) {
  explanation.backend = backend;
  if (backend == trace::Backend::kCuda) return;
  const Translator translate(backend);
  translate(explanation.verdict.evidence);
  translate(explanation.verdict.next.sentence);
  translate(explanation.verdict.next.lines);
  for (whatif::ProgramRemedy& remedy : explanation.why.remedies) {
    translate(remedy.sentence);
    translate(remedy.python);
  }
  for (ExplainedCause& cause : explanation.why.causes) {
    translate(cause.finding.evidence);
    translate(cause.finding.counter_evidence);
    translate(cause.finding.missing);
  }
  whatif::Advice& advice = explanation.what_ifs.advice;
  translate(advice.sentence);
  if (advice.paste.has_value()) translate(*advice.paste);
  explanation.what_ifs.own.reset();
  const bool is_expandable = advice.paste.has_value() && absl::StrContains(*advice.paste, "expandable_segments:True");
  if (backend == trace::Backend::kHip && is_expandable) explanation.notes.push_back(NoteOnExpandable());
}

}  // namespace ashlar::answers
