#include "benchmarks/groups/group_processes.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/groups/shaped_link.h"
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

// The end of the link of a rank.
int EndOf(int rank, const ServeGroupOptions& options) {
  return rank < options.processes / 2 ? 0 : 1;
}

absl::Status Run(int rank, const ServeGroupOptions& options,
                 const std::function<GroupReply(ProcessGroup&)>& make_reply) {
  ASSIGN_OR_RETURN(
      const auto store,
      store::FileStore::Open({.path = absl::StrCat(options.directory, "/store"),
                              .num_members = options.processes}));
  collectives::MakeGroupOptions group_options{
      .rank = rank, .size = options.processes, .backend = options.backend};
  group_options.gloo.machine =
      absl::StrCat("machine ", rank / options.ranks_per_machine);
  if (options.link_mbit_per_s > 0) {
    group_options.gloo.host = ShapedLink::Address(EndOf(rank, options));
    group_options.gloo.allow_insecure_network = true;
  }
  ASSIGN_OR_RETURN(const auto group,
                   collectives::MakeProcessGroup(*store, group_options));
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

// Returns the rank of this process, of which the others are children.
absl::StatusOr<int> Fork(const ServeGroupOptions& options) {
  std::optional<ShapedLink> link;
  if (options.link_mbit_per_s > 0) {
    ASSIGN_OR_RETURN(link, ShapedLink::Create(options.link_mbit_per_s));
  }
  int rank = 0;
  for (int other = 1; other < options.processes; ++other) {
    const pid_t child = fork();
    if (child < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      rank = other;
      break;
    }
  }
  if (link.has_value()) RETURN_IF_ERROR(link->Enter(EndOf(rank, options)));
  return rank;
}

}  // namespace

int ServeGroup(const ServeGroupOptions& options,
               const std::function<GroupReply(ProcessGroup&)>& make_reply) {
  const absl::StatusOr<int> rank = Fork(options);
  const absl::Status status =
      rank.ok() ? Run(*rank, options, make_reply) : rank.status();
  // The other ranks end with an error when rank 0 leaves.
  if (status.ok() || rank.value_or(0) != 0) return 0;
  std::fprintf(stderr, "rank 0: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace hawser::benchmarks
