#include "benchmarks/store_process.h"

#include <iostream>

#include "store/grpc/server.h"

namespace hawser::benchmarks {

absl::StatusOr<std::unique_ptr<PeerProcess>> StartStoreProcess() {
  return PeerProcess::Start({"/proc/self/exe", "--serve=store"},
                            "see the error above");
}

int ServeStore() {
  const auto server = store::StoreServer::Start({});
  if (!server.ok()) {
    std::cerr << "store: " << server.status() << "\n";
    return 1;
  }
  std::cout << "ready " << (*server)->address() << std::endl;
  std::cin.get();
  return 0;
}

}  // namespace hawser::benchmarks
