// What the module libashlar_mpi.so gives: the few calls of MPI that a fleet needs, as C functions. The program opens it
// at run time, so that it links no MPI itself; the module is built against the MPI that it will run with.
//
// Every function returns 0, or a number other than 0 with a text from `error`. One thread.
#ifndef ASHLAR_COMMANDS_FLEET_MPI_MPI_MODULE_H_
#define ASHLAR_COMMANDS_FLEET_MPI_MPI_MODULE_H_

extern "C" {

#define ASHLAR_MPI_MODULE_VERSION 1

struct AshlarMpiModule {
  int version;
  // Joins the job: this process's number and how many there are.
  int (*begin)(int* rank, int* size);
  int (*send)(int to, const char* bytes, unsigned long long size);
  // The next packet that has come: who sent it and how long it is; `from` -1: none.
  int (*look)(int* from, unsigned long long* size);
  // That packet.
  int (*receive)(int from, char* bytes, unsigned long long size);
  // Leaves the job, once all do.
  int (*end)(void);
  const char* (*error)(void);
  const char* (*library)(void);  // "Open MPI v4.1.4 ..."
};

// The one symbol of the module.
const AshlarMpiModule* ashlar_mpi_module(void);
typedef const AshlarMpiModule* (*AshlarMpiModuleFunction)(void);
}

#endif  // ASHLAR_COMMANDS_FLEET_MPI_MPI_MODULE_H_
