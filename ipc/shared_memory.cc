#include "ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::ipc {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::MapChecked(int fd, size_t bytes) {
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot map ", bytes, " bytes of shared memory"));
  }
  return SharedMemory(data, bytes);
}

absl::StatusOr<std::pair<SharedMemory, fs::UniqueFd>> SharedMemory::Create(
    const char* name, size_t bytes) {
  if (bytes == 0) {
    return absl::InvalidArgumentError("shared memory has at least 1 byte");
  }
  fs::UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", bytes,
                                                   " bytes of shared memory"));
  }
  ASSIGN_OR_RETURN(SharedMemory memory, MapChecked(fd.get(), bytes));
  return std::pair(std::move(memory), std::move(fd));
}

absl::StatusOr<SharedMemory> SharedMemory::Map(const fs::UniqueFd& fd,
                                               size_t bytes) {
  struct stat info {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the descriptor received is not shared memory of ", bytes,
                     " bytes that is sealed against resizing"));
  }
  return MapChecked(fd.get(), bytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace hawser::ipc
