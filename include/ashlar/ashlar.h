// Includes every header of the component allocator. A program that needs little may include the header of its topic
// alone:
//
//   allocator.h    Allocator and Block          recorder.h    recordings of a run
//   buffer.h       a block that frees itself    scope.h       names for parts of a program
//   pool.h         private pools                statistics.h  what it did, by PyTorch's names
//   devices.h      GPUs, host memory            snapshot.h    what it holds
//   options.h      settings                     errors.h      exceptions in place of statuses
//   events.h       what it decides              sleep.h       pools whose memory others have for a while
//
// explain.h is of the component analyzer, nvtx.h of adapters_nvtx.
#ifndef ASHLAR_ASHLAR_H_
#define ASHLAR_ASHLAR_H_

#include "ashlar/allocator.h"   // IWYU pragma: export
#include "ashlar/buffer.h"      // IWYU pragma: export
#include "ashlar/device.h"      // IWYU pragma: export
#include "ashlar/devices.h"     // IWYU pragma: export
#include "ashlar/errors.h"      // IWYU pragma: export
#include "ashlar/events.h"      // IWYU pragma: export
#include "ashlar/options.h"     // IWYU pragma: export
#include "ashlar/pool.h"        // IWYU pragma: export
#include "ashlar/recorder.h"    // IWYU pragma: export
#include "ashlar/scope.h"       // IWYU pragma: export
#include "ashlar/sleep.h"       // IWYU pragma: export
#include "ashlar/snapshot.h"    // IWYU pragma: export
#include "ashlar/statistics.h"  // IWYU pragma: export
#include "ashlar/units.h"       // IWYU pragma: export

#endif  // ASHLAR_ASHLAR_H_
