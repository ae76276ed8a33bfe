// Draws the pinned memory of the host that a snapshot records beside the device's.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_HOST_PICTURE_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_HOST_PICTURE_H_

#include <optional>

#include "allocator/trace/snapshot.h"
#include "analyzer/answers/picture/picture.h"
#include "analyzer/answers/picture/picture_limits.h"

namespace ashlar::answers {

// nullopt where there is none. Where its events do not lead to its segments, those alone are drawn: one moment.
std::optional<RunPicture> PictureOfHost(const trace::Snapshot& snapshot, const PictureLimits& limits);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_HOST_PICTURE_H_
