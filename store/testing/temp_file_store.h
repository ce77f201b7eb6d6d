// Files for tests of file stores.

#ifndef HAWSER_STORE_TESTING_TEMP_FILE_STORE_H_
#define HAWSER_STORE_TESTING_TEMP_FILE_STORE_H_

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/store.h"

namespace hawser::store {

// A temporary directory, removed on destruction.
class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "/file_store_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::string File() const { return path_ + "/store"; }

 private:
  std::string path_;
};

inline std::unique_ptr<FileStore> MustOpen(FileStoreOptions options) {
  absl::StatusOr<std::unique_ptr<FileStore>> store =
      FileStore::Open(std::move(options));
  EXPECT_THAT(store, async::IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

}  // namespace hawser::store

#endif  // HAWSER_STORE_TESTING_TEMP_FILE_STORE_H_
