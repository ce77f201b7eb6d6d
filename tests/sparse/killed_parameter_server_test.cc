// Training of a module whose parameters are on a server, a process of its own,
// that is killed under the steps and started again: the result is that of
// training in one process.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/module_file.h"
#include "optim/optimizer.h"
#include "optim/rule_spec.h"
#include "ps/parameter_set.h"
#include "ps/table_service.h"
#include "store/grpc/server.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"
#include "tests/program.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

// Each takes the time after which the name of a dead server can be taken.
constexpr int kKills = 4;

std::unique_ptr<nn::Linear> Model() {
  tensor::Generator generator(1);
  return *nn::Linear::Create({.in_features = 300, .out_features = 70},
                             generator);
}

// Sets the gradients of step number `step`.
void SetGradients(const nn::Module& model, int64_t step) {
  for (const Tensor& parameter : model.parameters()) {
    Tensor gradient = Tensor::Empty(parameter.shape());
    float* const values = gradient.data<float>();
    for (int64_t i = 0; i < gradient.num_elements(); ++i) {
      values[i] = static_cast<float>((7 * i + 3 * step) % 11) - 5;
    }
    ASSERT_THAT(autograd::SetGrad(parameter, gradient), IsOk());
  }
}

TEST(KilledParameterServerTest, TrainingContinuesAsIfNothingHadHappened) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/killed_parameter_server");
  std::filesystem::remove_all(directory);
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  const std::string url = absl::StrCat("tcp://", (*store)->address());
  const auto start_server = [&] {
    return std::make_unique<Program>(
        "cli/hawser",
        std::vector<std::string>{
            "ps", "--name=ps0", "--rank=1", absl::StrCat("--init=", url),
            absl::StrCat("--snapshot-dir=", directory), "--logging=write"});
  };
  std::unique_ptr<Program> server = start_server();
  launch::WorkerOptions options;
  options.identity = {.name = "trainer", .rank = 2};
  options.meeting_place.url = url;
  options.services.push_back(std::make_unique<ps::TableService>());
  const auto trainer = launch::Worker::Start(std::move(options));
  ASSERT_THAT(trainer, IsOk());
  ASSERT_TRUE(server->WaitForError("serving as 'ps0'")) << server->Errors();

  const optim::RuleSpec rule = *optim::ParseRuleSpec("Adam(lr=0.01)");
  const auto model = Model();
  const auto parameters = ps::ParameterSet::Create((*trainer)->agent(), *model,
                                                   {.rule = rule}, {"ps0"});
  ASSERT_THAT(parameters, IsOk());
  std::atomic<int64_t> steps{0};
  for (int i = 0; i < kKills; ++i) {
    std::thread killer([&, wanted = steps + 7 * i] {
      while (steps < wanted) std::this_thread::yield();
      EXPECT_EQ(kill(server->pid(), SIGKILL), 0);
      server->Wait();
      server = start_server();
    });
    for (int k = 0; k < 40; ++k) {
      SetGradients(*model, steps++);
      const absl::Status status = (*parameters)->Step();
      EXPECT_THAT(status, IsOk());
    }
    killer.join();
  }

  const auto local = Model();
  const auto optimizer = optim::Optimizer::Create(local->parameters(), rule);
  ASSERT_THAT(optimizer, IsOk());
  for (int64_t step = 0; step < steps; ++step) {
    SetGradients(*local, step);
    ASSERT_THAT((*optimizer)->Step(), IsOk());
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(model->parameters()[i].ToVector<float>(),
              local->parameters()[i].ToVector<float>());
  }

  // Weights of a file survive as well.
  const std::string path = absl::StrCat(directory, "/weights.safetensors");
  ASSERT_THAT(nn::SaveModule(*Model(), path), IsOk());
  ASSERT_THAT((*parameters)->Load(path), IsOk());
  ASSERT_EQ(kill(server->pid(), SIGKILL), 0);
  server->Wait();
  server = start_server();
  SetGradients(*model, 0);
  ASSERT_THAT((*parameters)->Fetch(), IsOk());
  EXPECT_EQ(model->parameters()[0].ToVector<float>(),
            Model()->parameters()[0].ToVector<float>());
  EXPECT_THAT((*trainer)->Shutdown(/*graceful=*/false), IsOk());
}

}  // namespace
}  // namespace hawser::tests
