// A table on a server process, and its client.

#ifndef HAWSER_BENCHMARKS_TABLE_PAIR_H_
#define HAWSER_BENCHMARKS_TABLE_PAIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peer_process.h"
#include "launch/worker.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "store/grpc/store.h"

namespace hawser::benchmarks {

// A worker of this process, the client of a worker in a process of its own.
class TablePair {
 public:
  // `same_host`: whether they use shared memory, which is the default of
  // workers, or the socket.
  static absl::StatusOr<std::unique_ptr<TablePair>> Start(
      const ps::TableSpec& spec, bool same_host);

  const ps::Table& table() const { return table_; }
  const std::string& store_address() const {
    return store_server_->description();
  }
  // Calls a function of the server that returns its 64 bytes.
  absl::Status SmallCall();

 private:
  TablePair(std::unique_ptr<PeerProcess> store_server,
            std::unique_ptr<PeerProcess> server,
            std::unique_ptr<store::GrpcStore> store,
            std::unique_ptr<launch::Worker> worker, ps::Table table)
      : store_server_(std::move(store_server)),
        server_(std::move(server)),
        store_(std::move(store)),
        worker_(std::move(worker)),
        table_(std::move(table)) {}

  const std::unique_ptr<PeerProcess> store_server_;
  const std::unique_ptr<PeerProcess> server_;
  const std::unique_ptr<store::GrpcStore> store_;
  const std::unique_ptr<launch::Worker> worker_;
  const ps::Table table_;
};

// Runs in the server process until the end of standard input. Returns its exit
// code.
int ServeTables(const std::string& store_address, bool same_host);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_TABLE_PAIR_H_
