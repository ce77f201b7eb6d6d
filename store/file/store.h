#ifndef HAWSER_STORE_FILE_STORE_H_
#define HAWSER_STORE_FILE_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"
#include "store/store_limits.h"

namespace hawser::store {

namespace internal {
class FileTable;
}  // namespace internal

struct FileStoreOptions {
  // On a file system that all members share and that has locks (NFS too).
  std::string path = {};
  // How many members open the file in all; the last one to close deletes it.
  // 0: not known, the file stays.
  int num_members = 0;
  // Of Open, and of calls that state none.
  absl::Duration timeout = kDefaultTimeout;
  StoreLimits limits = {};
};

// A store in one file: a log under file locks. Those who wait look every 10 ms.
// The log is compacted, within the file, when it has a megabyte and four times
// what its keys and values take, or when max_total_bytes is reached and it has
// twice that. Limits count the log, so that keys and values may take half of
// max_total_bytes before they are refused. A member may be killed at any
// moment, also of that.
//
// A member is alive while its object, or a process with it, exists. A file
// that a crashed run left over, so one without a living member in which some
// member never closed, starts empty for the next one that opens it. The end of
// a record that its writer did not finish is ignored and overwritten.
//
// Errors besides those of Store:
//   kInvalidArgument     the file is something else; left as it is.
//   kFailedPrecondition  more than `num_members` opened it, or it was deleted
//                        under us.
//   kDataLoss            the log is damaged.
//   kNotFound, kPermissionDenied, kResourceExhausted, kUnavailable
//                        the operating system refuses the file.
class FileStore final : public Store {
 public:
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(
      const FileStoreOptions& options);
  // Counts this member as finished.
  ~FileStore() override;

 private:
  FileStore(const FileStoreOptions& options,
            std::unique_ptr<internal::FileTable> table);

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
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

  // Runs `body` under the file's lock, with everything in it read.
  template <class Body>
  absl::Status Run(bool write, const std::string& key, const CallTime& time,
                   Body body);
  // Waits for all `keys`, then runs `when_present` under the lock.
  template <class Body>
  absl::Status Await(std::span<const std::string> keys, const CallTime& time,
                     Body when_present);
  // Inside Run.
  const std::string* FirstMissing(std::span<const std::string> keys) const;

  // Null where Open failed.
  const std::unique_ptr<internal::FileTable> table_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_FILE_STORE_H_
