#ifndef HAWSER_PS_TABLE_LIMITS_H_
#define HAWSER_PS_TABLE_LIMITS_H_

#include <cstdint>

namespace hawser::ps {

// Limits on the requests of a peer. Requests above them fail with
// kResourceExhausted, before anything is read.
struct TableLimits {
  int64_t max_tables = 1024;
  // Of a pull or push.
  int64_t max_keys = int64_t{1} << 22;
  // Of a table, on this server. 0: as many as fit into three quarters of the
  // machine's memory. A request that would create more fails; rows that exist
  // are served.
  int64_t max_rows = 0;
  // Of the rows of a pull or push.
  int64_t max_row_bytes = int64_t{1} << 28;
  // Requests that wait for the clocks of workers, of a peer and of all, and the
  // bytes of their keys and gradients.
  int64_t max_parked_requests_per_peer = 4096;
  int64_t max_parked_requests = 65536;
  int64_t max_parked_bytes_per_peer = int64_t{1} << 30;
  int64_t max_parked_bytes = int64_t{4} << 30;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_LIMITS_H_
