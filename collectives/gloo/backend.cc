#include "collectives/gloo/backend.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "collectives/gloo/hierarchical_backend.h"
#include "collectives/gloo/machines.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/mesh_backend.h"
#include "collectives/host/backend.h"
#include "collectives/loopback/backend.h"
#include "store/prefix_store.h"

namespace hawser::collectives {
namespace {

bool IsLoopback(const GlooOptions& options) {
  if (!options.interface.empty()) return options.interface == "lo";
  return options.host == "localhost" || options.host == "::1" ||
         absl::StartsWith(options.host, "127.");
}

std::vector<std::string> MachineNames(const Mesh& mesh) {
  std::vector<std::string> names;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    names.push_back(mesh.machine_of(rank));
  }
  return names;
}

// The memory that the ranks of this one's machine share; null if they cannot.
absl::StatusOr<std::unique_ptr<Backend>> MakeLocal(
    store::Store& store, Mesh& mesh, const Machines& machines,
    async::MonotonicTime deadline) {
  const int rank = mesh.rank();
  const int machine = machines.machine_of(rank);
  const std::vector<int>& ranks = machines.ranks_on(machine);
  if (ranks.size() == 1) return std::move(MakeLoopbackBackends(1)[0]);
  // Does not own the store.
  store::PrefixStore keys(
      absl::StrCat("machine/", machine),
      std::shared_ptr<store::Store>(std::shared_ptr<void>(), &store));
  HostOptions options;
  options.numbers = ranks;
  options.late_error = [&mesh](const std::vector<int>& late) {
    return mesh.LateError(std::set<int>(late.begin(), late.end()));
  };
  absl::StatusOr<std::unique_ptr<Backend>> local = MakeHostBackend(
      keys, machines.index_of(rank), static_cast<int>(ranks.size()),
      std::max(async::TimeBetween(std::chrono::steady_clock::now(), deadline),
               absl::ZeroDuration()),
      options);
  if (absl::IsFailedPrecondition(local.status())) {
    return std::unique_ptr<Backend>();
  }
  return local;
}

// All ranks learn which of them have a `local` backend.
absl::StatusOr<Machines> AgreeOnMachines(MeshBackend& backend,
                                         const Machines& machines,
                                         bool has_local,
                                         async::MonotonicTime deadline) {
  const std::byte mine{has_local};
  std::vector<std::byte> all(static_cast<size_t>(backend.mesh().size()));
  std::vector<MutableBytes> outputs;
  for (std::byte& other : all) outputs.emplace_back(&other, size_t{1});
  RETURN_IF_ERROR(
      backend.AllGather(ConstBytes(&mine, size_t{1}), outputs, deadline));
  std::vector<bool> can_share;
  for (const std::byte other : all) can_share.push_back(other != std::byte{0});
  return machines.Split(can_share);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeGlooBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    const GlooOptions& options) {
  if (!IsLoopback(options) && !options.allow_insecure_network) {
    return absl::FailedPreconditionError(absl::StrCat(
        "refusing to connect through ",
        options.interface.empty() ? options.host : options.interface,
        ": it is not loopback, and Gloo's connections are neither encrypted "
        "nor authenticated; set allow_insecure_network if every machine that "
        "can connect is trusted"));
  }
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  ASSIGN_OR_RETURN(
      std::unique_ptr<Mesh> mesh,
      Mesh::Connect(
          store,
          {.rank = rank,
           .size = size,
           .host = options.host,
           .interface = options.interface,
           .machine = options.machine.empty() ? NameOfHost() : options.machine},
          timeout));
  Machines machines(MachineNames(*mesh));
  auto backend = std::make_unique<MeshBackend>(std::move(mesh));
  if (machines.count() == size) return backend;
  absl::StatusOr<std::unique_ptr<Backend>> local =
      MakeLocal(store, backend->mesh(), machines, deadline);
  if (!local.ok()) {
    backend->Abort(local.status());
    return local.status();
  }
  ASSIGN_OR_RETURN(machines, AgreeOnMachines(*backend, machines,
                                             *local != nullptr, deadline));
  if (machines.count() == size) return backend;
  if (machines.size_of(machines.machine_of(rank)) == 1) {
    local = std::move(MakeLoopbackBackends(1)[0]);
  }
  return std::make_unique<HierarchicalBackend>(
      std::move(backend), *std::move(local), std::move(machines));
}

}  // namespace hawser::collectives
