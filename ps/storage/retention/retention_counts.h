// Counts of rows that were removed and of updates that were dropped.

#ifndef HAWSER_PS_STORAGE_RETENTION_RETENTION_COUNTS_H_
#define HAWSER_PS_STORAGE_RETENTION_RETENTION_COUNTS_H_

#include <cstdint>

namespace hawser::ps {

// Since a table was created on this server or restored. A plain value.
struct RetentionCounts {
  // Rows that were removed after their TTL, and to make room for others.
  int64_t rows_expired = 0;
  int64_t rows_evicted = 0;
  // Gradients of keys that have no row: they had too few pushes, or all rows
  // belong to other keys of the same push.
  int64_t updates_not_admitted = 0;
  int64_t updates_without_room = 0;

  RetentionCounts& operator+=(const RetentionCounts& other) {
    rows_expired += other.rows_expired;
    rows_evicted += other.rows_evicted;
    updates_not_admitted += other.updates_not_admitted;
    updates_without_room += other.updates_without_room;
    return *this;
  }
  friend bool operator==(const RetentionCounts&,
                         const RetentionCounts&) = default;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_RETENTION_COUNTS_H_
