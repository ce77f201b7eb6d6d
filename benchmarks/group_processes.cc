#include "benchmarks/group_processes.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/make_group.h"
#include "store/file/store.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;
using tensor::Tensor;

// Rank 0 passes a request; the others get it.
absl::StatusOr<std::string> Share(ProcessGroup& group, std::string request) {
  constexpr size_t kBytes = 64;
  request.resize(kBytes);
  Tensor text = Tensor::FromVector(
      std::vector<uint8_t>(request.begin(), request.end()), {kBytes});
  RETURN_IF_ERROR(group.Broadcast(text, 0));
  const std::vector<uint8_t> bytes = text.ToVector<uint8_t>();
  return std::string(reinterpret_cast<const char*>(bytes.data()));
}

absl::Status Run(int rank, int processes, const std::string& directory,
                 const std::function<GroupReply(ProcessGroup&)>& make_reply) {
  ASSIGN_OR_RETURN(
      const auto store,
      store::FileStore::Open({.path = absl::StrCat(directory, "/store"),
                              .num_members = processes}));
  ASSIGN_OR_RETURN(
      const auto group,
      collectives::MakeProcessGroup(*store, {.rank = rank, .size = processes}));
  const GroupReply reply = make_reply(*group);
  RETURN_IF_ERROR(group->Barrier());
  if (rank == 0) std::cout << "ready hawser" << std::endl;
  while (true) {
    std::string line;
    if (rank == 0 && !std::getline(std::cin, line)) return absl::OkStatus();
    ASSIGN_OR_RETURN(line, Share(*group, line));
    ASSIGN_OR_RETURN(const double number, reply(*group, line));
    if (rank == 0) std::cout << number << std::endl;
  }
}

}  // namespace

int ServeGroup(int processes, const std::string& directory,
               const std::function<GroupReply(ProcessGroup&)>& make_reply) {
  int rank = 0;
  for (int other = 1; other < processes; ++other) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      rank = other;
      break;
    }
  }
  const absl::Status status = Run(rank, processes, directory, make_reply);
  // The other ranks end with an error when rank 0 leaves.
  if (rank != 0 || status.ok()) return 0;
  std::fprintf(stderr, "rank 0: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace hawser::benchmarks
