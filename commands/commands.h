// Each adds a command to the line: its flags, its help, and what it does when it is the one given.
#ifndef ASHLAR_COMMANDS_COMMANDS_H_
#define ASHLAR_COMMANDS_COMMANDS_H_

#include <string>

#include "console/command_line.h"

namespace ashlar::cli {

void AddExplain(CommandLine& line);    // what happened to the memory, and what would have helped
void AddReport(CommandLine& line);     // what inputs hold as one HTML file to look at
void AddReplay(CommandLine& line);     // a request trace or a snapshot under one setting
void AddCheck(CommandLine& line);      // holds limits against a trace, for CI; exit code 1 where one is broken
void AddDiff(CommandLine& line);       // what grew between two recordings
void AddBound(CommandLine& line);      // how little memory the same lifetimes need, and which setting comes closest
void AddPlan(CommandLine& line);       // where the large blocks of a run go, for `plan:FILE` to follow
void AddSweep(CommandLine& line);      // settings side by side, best first, and the one line to paste
void AddTune(CommandLine& line);       // what the tuner makes of the last steps of a recording (docs/library/tuner.md)
void AddFleet(CommandLine& line);      // the ranks of one job together, read by one process or by many
void AddConvert(CommandLine& line);    // a recording, snapshot, trace or packing problem in another format
void AddEstimate(CommandLine& line);   // the memory of a training or inference run before it starts
void AddRun(CommandLine& line);        // runs a workload and captures it: a command below it for each workload
void AddWatch(CommandLine& line);      // where a recorded run is now, as it goes
void AddAttach(CommandLine& line);     // who holds the memory of a program that runs, however it was started
void AddDocuments(CommandLine& line);  // guide and schema: the documents kept in the program
void AddPage(CommandLine& line);       // the analyzer in a browser: one HTML file that needs no program
void AddMcp(CommandLine& line);        // the answers as tools of the Model Context Protocol

// The schemas of answers that are made beside the flags (docs/schemas).
std::string RunSchema();
std::string TuneSchema();

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_COMMANDS_H_
