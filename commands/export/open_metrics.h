// The figures of explanations as OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec), which
// Prometheus and its like read: the accounting, the peaks, failures, causes and what-ifs. What is not known has no
// sample.
//
//   # TYPE ashlar_part_bytes gauge
//   # UNIT ashlar_part_bytes bytes
//   # HELP ashlar_part_bytes Where the memory is at the moment explained.
//   ashlar_part_bytes{device="0",part="stranded"} 1224736768
//
//   OpenMetrics metrics;
//   metrics.Add(run);      // for each device, with its explanation
//   metrics.Write(out);
#ifndef ASHLAR_COMMANDS_EXPORT_OPEN_METRICS_H_
#define ASHLAR_COMMANDS_EXPORT_OPEN_METRICS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "commands/export/exported_run.h"

namespace ashlar::exports {

class OpenMetrics {
 public:
  OpenMetrics();
  void Add(const ExportedRun& run);
  void Write(ByteSink& out) const;

 private:
  struct Family {
    const char* name;
    const char* type;
    const char* unit;  // nullptr: none
    const char* help;
    std::vector<std::string> samples = {};
  };
  // Values of a label; the first is the device.
  using Labels = std::vector<std::pair<const char*, std::string>>;

  void Sample(absl::string_view family, const Labels& labels, const std::string& value);
  void AddFigures(const ExportedRun& run, const std::string& device);
  void AddWhatIfs(const ExportedRun& run, const std::string& device);
  void AddCauses(const ExportedRun& run, const std::string& device);

  std::vector<Family> families_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_OPEN_METRICS_H_
