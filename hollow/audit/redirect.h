// Makes functions of an object go on in others, before anybody has run one of them.
//
//   Redirection all[] = {{entry, target_address}};
//   if (!Redirect(map, &loaded, all, 1)) ...       // nothing is changed
//
// A function keeps its address; what is overwritten is its beginning. One that is shorter than a jump is left. Pages
// are writable or can be run, never both. Where the system refuses either, the object's pages are those of its file
// again.
#ifndef ASHLAR_HOLLOW_AUDIT_REDIRECT_H_
#define ASHLAR_HOLLOW_AUDIT_REDIRECT_H_

#include "hollow/audit/entries.h"
#include "hollow/audit/loaded.h"

typedef struct {
  const Entry* entry;
  uint64_t target;
} Redirection;

int Redirect(const struct link_map* map, const LoadedFile* loaded, const Redirection* all, size_t count);

#endif  // ASHLAR_HOLLOW_AUDIT_REDIRECT_H_
