#include "benchmarks/table_pair.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "benchmarks/peer_process.h"
#include "benchmarks/store_process.h"
#include "launch/worker.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "store/grpc/store.h"

namespace hawser::benchmarks {
namespace {

inline constexpr rpc::Function<std::string(std::string)> kEcho{"bench.Echo"};

absl::StatusOr<std::unique_ptr<launch::Worker>> StartWorker(
    const std::string& name, int rank, store::Store* store, bool same_host,
    const rpc::FunctionRegistry* registry = nullptr) {
  launch::WorkerOptions options;
  options.identity = {.name = name, .rank = rank};
  options.meeting_place.store = store;
  options.registry = registry;
  options.network.grpc.same_host = same_host;
  options.services.push_back(std::make_unique<ps::TableService>());
  return launch::Worker::Start(std::move(options));
}

absl::Status Serve(const std::string& store_address, bool same_host) {
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(registry.Register(kEcho,
                                    [](std::string text) { return text; },
                                    {.run_on = rpc::RunOn::Inline()}));
  ASSIGN_OR_RETURN(const auto store,
                   store::GrpcStore::Connect({.address = store_address}));
  ASSIGN_OR_RETURN(const auto worker,
                   StartWorker("ps0", 0, store.get(), same_host, &registry));
  std::cout << "ready" << std::endl;
  std::cin.get();
  return worker->Shutdown(/*graceful=*/false);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TablePair>> TablePair::Start(
    const ps::TableSpec& spec, bool same_host) {
  ASSIGN_OR_RETURN(std::unique_ptr<PeerProcess> store_server,
                   StartStoreProcess());
  const std::string& address = store_server->description();
  ASSIGN_OR_RETURN(std::unique_ptr<PeerProcess> server,
                   PeerProcess::Start({"/proc/self/exe", "--serve=tables",
                                       absl::StrCat("--store=", address),
                                       absl::StrCat("--same_host=", same_host)},
                                      "the server of tables"));
  ASSIGN_OR_RETURN(std::unique_ptr<store::GrpcStore> store,
                   store::GrpcStore::Connect({.address = address}));
  ASSIGN_OR_RETURN(std::unique_ptr<launch::Worker> worker,
                   StartWorker("client", 1, store.get(), same_host));
  ASSIGN_OR_RETURN(ps::Table table,
                   ps::Table::Create(worker->agent(), spec, {"ps0"}));
  return std::unique_ptr<TablePair>(
      new TablePair(std::move(store_server), std::move(server),
                    std::move(store), std::move(worker), std::move(table)));
}

absl::Status TablePair::SmallCall() {
  return worker_->agent().Sync("ps0", kEcho, std::string(64, 'x')).status();
}

int ServeTables(const std::string& store_address, bool same_host) {
  const absl::Status status = Serve(store_address, same_host);
  if (status.ok()) return 0;
  std::cerr << "ps: server: " << status.message() << std::endl;
  return 1;
}

}  // namespace hawser::benchmarks
