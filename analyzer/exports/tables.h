// A run as rows of tables: docs/guide/tables.md has the schema. Ids are those of the run (a block's is its index in
// Timeline::blocks()), an event of NULL lies outside the window, a flag is 0 or 1.
#ifndef ASHLAR_ANALYZER_EXPORTS_TABLES_H_
#define ASHLAR_ANALYZER_EXPORTS_TABLES_H_

#include "allocator/trace/stack_table.h"
#include "analyzer/exports/exported_run.h"
#include "analyzer/exports/table_sink.h"

namespace ashlar::exports {

// The run's timeline and, where it has one, its explanation.
void WriteRunTables(const ExportedRun& run, TableSink& out);

// The stacks of all runs of an input: once for the first of them.
void WriteStackTables(const trace::StackTable& stacks, TableSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_TABLES_H_
