#include "commands/fleet/mpi/mpi_module.h"

#include <mpi.h>

#include <climits>
#include <cstring>

namespace {

constexpr int kTag = 22;

char error_text[MPI_MAX_ERROR_STRING] = "";

int Checked(int code) {
  if (code == MPI_SUCCESS) return 0;
  int length = 0;
  if (MPI_Error_string(code, error_text, &length) != MPI_SUCCESS) std::strcpy(error_text, "an MPI call failed");
  return 1;
}

int Begin(int* rank, int* size) {
  int provided = 0;
  if (Checked(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)) != 0) return 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (Checked(MPI_Comm_rank(MPI_COMM_WORLD, rank)) != 0) return 1;
  return Checked(MPI_Comm_size(MPI_COMM_WORLD, size));
}

int Send(int to, const char* bytes, unsigned long long size) {
  if (size > INT_MAX) {
    std::strcpy(error_text, "a packet of more than 2 GiB");
    return 1;
  }
  return Checked(MPI_Send(bytes, static_cast<int>(size), MPI_BYTE, to, kTag, MPI_COMM_WORLD));
}

int Look(int* from, unsigned long long* size) {
  int is_there = 0;
  MPI_Status status;
  if (Checked(MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &is_there, &status)) != 0) return 1;
  *from = is_there != 0 ? status.MPI_SOURCE : -1;
  *size = 0;
  if (is_there == 0) return 0;
  int count = 0;
  if (Checked(MPI_Get_count(&status, MPI_BYTE, &count)) != 0) return 1;
  *size = static_cast<unsigned long long>(count);
  return 0;
}

int Receive(int from, char* bytes, unsigned long long size) {
  return Checked(MPI_Recv(bytes, static_cast<int>(size), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int End() { return Checked(MPI_Finalize()); }

const char* Error() { return error_text; }

const char* Library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  return MPI_Get_library_version(text, &length) == MPI_SUCCESS ? text : "";
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const AshlarMpiModule* ashlar_mpi_module() {
  static const AshlarMpiModule module = {ASHLAR_MPI_MODULE_VERSION, Begin, Send, Look, Receive, End, Error, Library};
  return &module;
}
