#include "analyzer/answers/replay_settings.h"

namespace ashlar::answers {

void Tell(const ReplaySettings& settings, const std::string& stage) {
  if (settings.progress) settings.progress(stage);
}

remedies::ReplayLimits LimitsOf(const ReplaySettings& settings) {
  return {settings.capacity_bytes, settings.memory_fraction, settings.segment_addresses, settings.device_costs,
          settings.threads};
}

}  // namespace ashlar::answers
