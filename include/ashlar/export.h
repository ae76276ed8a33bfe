// ASHLAR_EXPORT marks the names that programs may link against. Libraries are built with hidden visibility and export
// nothing else.
#ifndef ASHLAR_EXPORT_H_
#define ASHLAR_EXPORT_H_

#define ASHLAR_EXPORT __attribute__((visibility("default")))

#endif  // ASHLAR_EXPORT_H_
