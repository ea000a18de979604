/* Adds the squares of the numbers from 1 to NUMBERS. Each rank adds a part of the squares on its
 * device (MGPU_RT_DEVICE=local-rank), and MPI adds the results of the ranks.
 *
 *     ranks           prints a table
 *     ranks --json    prints the same as JSON
 *
 * Run three ranks on two devices:
 *
 *     rank  device  PCI bus                    sum  us a call
 *        0       0  0000:03:00.0     2666866670000       41.2
 *        1       1  0000:04:00.0    18667266670000       40.7
 *        2       0  0000:03:00.0    50667666670000       43.9
 *     sum of the squares of 1 to 60000: 72001800010000, as it should be */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 60000, CALLS = 20 };

int64_t sum_of_squares(int64_t first, int64_t count); /* of squares.mlir */
int hipGetDevice(int *device);                        /* of HIP */
int hipDeviceGetPCIBusId(char *place, int size, int device);

struct result {
    int rank, device;
    char place[32];
    double us;
    int64_t sum;
};

static void run(int rank, int ranks, struct result *result) {
    const int64_t first = 1 + (int64_t)NUMBERS * rank / ranks;
    const int64_t next = 1 + (int64_t)NUMBERS * (rank + 1) / ranks;
    result->rank = rank;
    result->sum = sum_of_squares(first, next - first); /* the first call loads the library and
                                                        * chooses the device */

    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        result->sum = sum_of_squares(first, next - first);
    result->us = (MPI_Wtime() - start) / CALLS * 1e6;

    result->device = -1;
    strcpy(result->place, "?");
    if (hipGetDevice(&result->device) == 0)
        hipDeviceGetPCIBusId(result->place, sizeof result->place, result->device);
}

static void print_table(const struct result *results, int ranks) {
    printf("rank  device  %-12s  %16s  us a call\n", "PCI bus", "sum");
    for (const struct result *r = results; r < results + ranks; r++)
        printf("%4d  %6d  %-12s  %16" PRId64 "  %9.1f\n", r->rank, r->device, r->place, r->sum,
               r->us);
}

static void print_json(const struct result *results, int ranks, int64_t sum, bool right) {
    printf("{\"ranks\": [");
    for (const struct result *r = results; r < results + ranks; r++)
        printf("%s{\"rank\": %d, \"device\": %d, \"bus\": \"%s\", \"sum\": %" PRId64
               ", \"us\": %.1f}",
               r == results ? "" : ", ", r->rank, r->device, r->place, r->sum, r->us);
    printf("], \"numbers\": %d, \"sum\": %" PRId64 ", \"right\": %s}\n", NUMBERS, sum,
           right ? "true" : "false");
}

/* Prints the results that rank 0 has gathered, and the sum that MPI has computed. Returns true if
 * the sum is right. */
static bool print(const struct result *results, int ranks, int64_t sum, bool json) {
    const int64_t n = NUMBERS;
    const bool right = sum == n * (n + 1) * (2 * n + 1) / 6;
    if (json) {
        print_json(results, ranks, sum, right);
    } else {
        print_table(results, ranks);
        printf("sum of the squares of 1 to %d: %" PRId64 ", %s\n", NUMBERS, sum,
               right ? "as it should be" : "which is wrong");
    }
    return right;
}

int main(int argc, char **argv) {
    struct result own = {0};
    int rank, ranks, right = 1;
    int64_t sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct result *results = calloc((size_t)ranks, sizeof *results);
    if (!results)
        MPI_Abort(MPI_COMM_WORLD, 2);

    run(rank, ranks, &own);
    MPI_Reduce(&own.sum, &sum, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(&own, sizeof own, MPI_BYTE, results, sizeof own, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        right = print(results, ranks, sum, argc > 1 && strcmp(argv[1], "--json") == 0);
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(results);
    MPI_Finalize();
    return right ? 0 : 1;
}
