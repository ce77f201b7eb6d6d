#ifndef HAWSER_STORE_FILE_STORE_H_
#define HAWSER_STORE_FILE_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "store/store.h"
#include "store/store_limits.h"
#include "store/watch_threads.h"

namespace hawser::store {

namespace internal {
class FileTable;
}  // namespace internal

struct FileStoreOptions {
  // Path on a file system that all members share and that supports locks
  // (including NFS).
  std::string path = {};
  // Total number of members that open the file; the last one to close it
  // deletes it. 0 if unknown: the file is kept.
  int num_members = 0;
  // Timeout of Open, and default timeout of calls.
  absl::Duration timeout = kDefaultTimeout;
  StoreLimits limits = {};
};

// A store in one file: a log under file locks. Waiting calls poll every 10 ms,
// and so do watches, each on a thread of its own.
// The log is compacted, within the file, when it exceeds 1 MiB and four times
// the size of its keys and values, or when it reaches max_total_bytes and twice
// that size. Limits count the log, so keys and values may use half of
// max_total_bytes before changes are rejected. A member may be killed at any
// time, even during compaction.
//
// Each member times a lease by its own monotonic clock, from the moment at
// which it reads the record of the last renewal. Members may thus see a lease
// end at slightly different times; a member that reads rarely, or that has just
// opened the file, sees it end later.
//
// A member is alive while its object, or a process with it, exists. A file left
// over by a crashed run, that is, without a living member but with a member
// that never closed it, is emptied by the next member that opens it. A record
// that its writer did not finish is ignored and overwritten.
//
// Errors besides those of Store:
//   kInvalidArgument     the file is not a store; it is left unchanged.
//   kFailedPrecondition  more than `num_members` opened it, or it was deleted
//                        while in use.
//   kDataLoss            the log is damaged.
//   kNotFound, kPermissionDenied, kResourceExhausted, kUnavailable
//                        the operating system denies access to the file.
class FileStore final : public Store {
 public:
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(
      const FileStoreOptions& options);
  // Records that this member has finished.
  ~FileStore() override;

 private:
  FileStore(const FileStoreOptions& options,
            std::unique_ptr<internal::FileTable> table);

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
  absl::Status DoSetLease(const std::string& key, std::string value,
                          absl::Duration lifetime,
                          const CallTime& time) override;
  async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<WatchedKey> keys) override;
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime& time) override;
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime& time) override;
  absl::StatusOr<CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime& time) override;
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime& time) override;
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime& time) override;
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoNumKeys(const CallTime& time) override;

  // Runs `body` under the file's lock, with all records read.
  template <class Body>
  absl::Status Run(bool write, const std::string& key, const CallTime& time,
                   Body body);
  // Waits for all `keys`, then runs `when_present` under the lock.
  template <class Body>
  absl::Status Await(std::span<const std::string> keys, const CallTime& time,
                     Body when_present);
  // Called inside Run.
  const std::string* FirstMissing(std::span<const std::string> keys) const;

  // The values of `keys` once one of them has changed.
  absl::StatusOr<std::vector<std::string>> Watch(
      std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch);

  // Null if Open failed.
  const std::unique_ptr<internal::FileTable> table_;
  internal::WatchThreads watches_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_FILE_STORE_H_
