// Live bytes at the moment as folded stacks: a line a stack, outermost frame first, which flamegraph.pl, inferno and
// speedscope read.
//
//   main (train.py:12);forward (model.py:211) 4194304
//
// A frame's ';' becomes ':', its line breaks become blanks. With several devices the first frame is "device 0".
#ifndef ASHLAR_ANALYZER_EXPORTS_FOLDED_H_
#define ASHLAR_ANALYZER_EXPORTS_FOLDED_H_

#include "allocator/base/byte_sink.h"
#include "analyzer/exports/exported_run.h"

namespace ashlar::exports {

void WriteFolded(const ExportedRun& run, bool names_device, ByteSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_FOLDED_H_
