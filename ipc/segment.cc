#include "ipc/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"

namespace hawser::ipc {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::StatusOr<SegmentLayout*> MapLayout(int fd) {
  void* memory = mmap(nullptr, sizeof(SegmentLayout), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "cannot map shared memory");
  }
  return static_cast<SegmentLayout*>(memory);
}

}  // namespace

absl::StatusOr<std::pair<std::shared_ptr<Segment>, fs::UniqueFd>>
Segment::Create() {
  fs::UniqueFd fd(memfd_create("hawser-rpc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), sizeof(SegmentLayout)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "cannot create shared memory");
  }
  absl::StatusOr<SegmentLayout*> layout = MapLayout(fd.get());
  if (!layout.ok()) return layout.status();
  // No thread polls the rings yet.
  (*layout)->to_server.control.reader_asleep.store(1);
  (*layout)->to_client.control.reader_asleep.store(1);
  return std::pair(std::shared_ptr<Segment>(new Segment(*layout)),
                   std::move(fd));
}

absl::StatusOr<std::shared_ptr<Segment>> Segment::Map(const fs::UniqueFd& fd) {
  struct stat info {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) != sizeof(SegmentLayout)) {
    return absl::InvalidArgumentError(
        "the peer's memory is not sealed or has another size");
  }
  absl::StatusOr<SegmentLayout*> layout = MapLayout(fd.get());
  if (!layout.ok()) return layout.status();
  return std::shared_ptr<Segment>(new Segment(*layout));
}

Segment::~Segment() { munmap(layout_, sizeof(SegmentLayout)); }

}  // namespace hawser::ipc
