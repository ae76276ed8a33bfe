// What the real cuDNN is asked about after the run, as JSON: a plan's graph, and the device. The questions are put by
// launcher/cudnn_workspaces.h, in a process of its own.
//
//   {"mode":0,"graph":{"kind":15,"set":[[801,15,1,[{"kind":10,"set":[[700,4,1,"0000803f"],...]}]]]}}
//
// `set`: name, type, count and bytes (hexadecimal) of each attribute that was set, or the descriptors; handles are left
// out.
#ifndef ASHLAR_HOLLOW_API_CUDNN_BACKEND_TEXT_H_
#define ASHLAR_HOLLOW_API_CUDNN_BACKEND_TEXT_H_

#include <string>

#include "hollow/api/cudnn/backend.h"
#include "hollow/process/settings.h"

namespace ashlar::hollow {

// Of a plan; empty where it has no graph, as one that is made of its own text.
std::string QuestionOf(const BackendDescriptor& plan);
// The same, of the heuristic that a plan's configuration comes from.
std::string QuestionOfHeuristic(const BackendDescriptor& heuristic);

// As CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION of cuDNN 9.8 to 9.24 has it.
std::string CudnnDeviceText(const Settings& settings, int device);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDNN_BACKEND_TEXT_H_
