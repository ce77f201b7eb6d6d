#ifndef HAWSER_STORE_TESTING_SERVER_PROCESS_H_
#define HAWSER_STORE_TESTING_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/program.h"

namespace hawser::store::internal {

// Debian's etcd on a free loopback port, with its own data directory. Aborts
// the test, naming the package, if etcd is not installed. Killed when this
// object is destroyed.
class EtcdProcess {
 public:
  EtcdProcess();
  ~EtcdProcess();

  std::string address() const;
  int port() const { return port_; }

  // Stops the process and starts another one with the same data, on another
  // port.
  void Restart();

 private:
  void Start();

  std::string folder_;
  std::unique_ptr<tests::Program> program_;
  int port_ = 0;
};

// Debian's Redis, likewise; keeps its data only in memory.
class RedisProcess {
 public:
  // `options` are additional command-line options.
  explicit RedisProcess(std::vector<std::string> options = {});

  std::string address() const;
  int port() const { return port_; }

  // Stops the process and starts an empty one, on another port.
  void Restart() { Start(); }

 private:
  void Start();

  const std::vector<std::string> options_;
  std::unique_ptr<tests::Program> program_;
  int port_ = 0;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_TESTING_SERVER_PROCESS_H_
