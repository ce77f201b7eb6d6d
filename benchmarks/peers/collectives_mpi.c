/* MPI's side of the benchmark of collectives.
 *
 *   mpirun --allow-run-as-root --oversubscribe -np PROCESSES ./collectives_mpi
 *
 * Prints "ready" and the library's version, then reads requests from standard
 * input, one per line, and replies as collectives_side.h says. Between requests
 * the ranks sleep, since MPI polls while it waits. The benchmark compiles this
 * file when it runs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kRepeats = 3, kMaxBytes = 64 << 20 };

static float *data, *part;

static void Run(const char *operation, int count, int processes) {
  const int share = count / processes;
  if (strcmp(operation, "all_gather") == 0) {
    MPI_Allgather(part, share, MPI_FLOAT, data, share, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (strcmp(operation, "reduce_scatter") == 0) {
    MPI_Reduce_scatter_block(data, part, share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (strcmp(operation, "broadcast") == 0) {
    MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}

static int Compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double Measure(const char *operation, long bytes, int processes) {
  const int count = (int)(bytes / (long)sizeof(float));
  long times = (32L << 20) / bytes;
  if (times < 2) times = 2;
  if (times > 300) times = 300;
  memset(data, 0, (size_t)bytes);
  memset(part, 0, (size_t)bytes);
  for (long i = 0; i < times && i < 10; ++i) Run(operation, count, processes);
  double us[kRepeats];
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (long i = 0; i < times; ++i) Run(operation, count, processes);
    us[repeat] = (MPI_Wtime() - begin) * 1e6 / (double)times;
  }
  qsort(us, kRepeats, sizeof(double), Compare);
  return us[kRepeats / 2];
}

int main(int argc, char **argv) {
  int rank, processes, length;
  char version[MPI_MAX_LIBRARY_VERSION_STRING], line[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  data = malloc(kMaxBytes);
  part = malloc(kMaxBytes);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",")] = '\0';
  if (rank == 0) {
    printf("ready %s\n", version);
    fflush(stdout);
  }
  for (;;) {
    if (rank == 0 && fgets(line, sizeof(line), stdin) == NULL) MPI_Abort(MPI_COMM_WORLD, 0);
    MPI_Request request;
    int done = 0;
    MPI_Ibcast(line, sizeof(line), MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    for (;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) break;
      usleep(1000);
    }
    char operation[32];
    long bytes;
    if (sscanf(line, "%31s %ld", operation, &bytes) != 2) return 2;
    const double us = Measure(operation, bytes, processes);
    if (rank == 0) {
      printf("%.3f\n", us);
      fflush(stdout);
    }
  }
}
