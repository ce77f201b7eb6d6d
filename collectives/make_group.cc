#include "collectives/make_group.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "collectives/backend.h"
#include "collectives/gloo/backend.h"
#include "collectives/host/backend.h"
#include "collectives/loopback/backend.h"
#include "collectives/mpi/backend.h"
#include "collectives/nccl/backend.h"
#include "collectives/nccl/system_library.h"
#include "store/prefix_store.h"

namespace hawser::collectives {
namespace {

absl::StatusOr<std::unique_ptr<Backend>> MakeGloo(
    store::Store& store, const MakeGroupOptions& options) {
  return MakeGlooBackend(store, options.rank, options.size,
                         options.start_timeout, options.gloo);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(
    store::Store& store, const MakeGroupOptions& options,
    const std::string& backend);

absl::StatusOr<std::unique_ptr<Backend>> MakeNccl(
    store::Store& store, const MakeGroupOptions& options) {
  // Does not own the store.
  store::PrefixStore keys("control", std::shared_ptr<store::Store>(
                                         std::shared_ptr<void>(), &store));
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> control,
                   MakeBackend(keys, options, ""));
  return MakeNcclBackend(store, options.rank, options.size,
                         options.start_timeout,
                         MakeSystemNcclLibrary(options.nccl.device),
                         std::move(control), options.nccl.config);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(
    store::Store& store, const MakeGroupOptions& options,
    const std::string& backend) {
  if (options.size == 1 && (backend.empty() || backend == "loopback")) {
    return std::move(MakeLoopbackBackends(1)[0]);
  }
  if (backend == "gloo") return MakeGloo(store, options);
  if (backend == "nccl") return MakeNccl(store, options);
  if (backend == "mpi") {
    return MakeMpiBackend(store, options.rank, options.size,
                          options.start_timeout);
  }
  if (backend.empty() || backend == "host") {
    absl::StatusOr<std::unique_ptr<Backend>> host = MakeHostBackend(
        store, options.rank, options.size, options.start_timeout);
    // All ranks get this error, if one of them runs elsewhere.
    if (!backend.empty() || !absl::IsFailedPrecondition(host.status())) {
      return host;
    }
    return MakeGloo(store, options);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no backend \"", backend, "\" for a group of ", options.size,
      ": host, gloo, nccl, mpi, or loopback for a group of one"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> MakeProcessGroup(
    store::Store& store, const MakeGroupOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "process group \"", options.group.name, "\": there is no rank ",
        options.rank, " in a group of ", options.size));
  }
  // Does not own the store.
  store::PrefixStore keys(
      absl::StrCat("collectives/", options.group.name),
      std::shared_ptr<store::Store>(std::shared_ptr<void>(), &store));
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      MakeBackend(keys, options, options.backend);
  if (!backend.ok()) {
    return absl::Status(
        backend.status().code(),
        absl::StrCat("process group \"", options.group.name, "\", rank ",
                     options.rank, " of ", options.size, ": ",
                     std::string(backend.status().message())));
  }
  return std::make_unique<ProcessGroup>(*std::move(backend), options.rank,
                                        options.size, options.group);
}

}  // namespace hawser::collectives
