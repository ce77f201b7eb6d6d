#include "rpc/same_host/link_memory.h"

#include "async/status_macros.h"

namespace hawser::rpc {

absl::StatusOr<std::pair<std::shared_ptr<LinkMemory>, fs::UniqueFd>>
LinkMemory::Create() {
  ASSIGN_OR_RETURN(auto created,
                   ipc::SharedMemory::Create("hawser-rpc", sizeof(LinkLayout)));
  const std::shared_ptr<LinkMemory> memory(
      new LinkMemory(std::move(created.first)));
  // No thread polls the rings yet.
  memory->layout().to_server.control.reader_asleep.store(1);
  memory->layout().to_client.control.reader_asleep.store(1);
  return std::pair(memory, std::move(created.second));
}

absl::StatusOr<std::shared_ptr<LinkMemory>> LinkMemory::Map(
    const fs::UniqueFd& fd) {
  ASSIGN_OR_RETURN(ipc::SharedMemory memory,
                   ipc::SharedMemory::Map(fd, sizeof(LinkLayout)));
  return std::shared_ptr<LinkMemory>(new LinkMemory(std::move(memory)));
}

}  // namespace hawser::rpc
