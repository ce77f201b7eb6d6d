// Tests that run the example as a user does, in several processes.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "data/tabular/samples.h"
#include "data/tabular/synthetic_ratings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "ps/training/checkpoint.h"
#include "tests/training/training_program.h"

namespace hawser::examples::matrix_factorization {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::DataFlag;
using tests::TemporaryPath;

class MatrixFactorization : public tests::TrainingProgram {
 public:
  explicit MatrixFactorization(const std::vector<std::string>& flags)
      : TrainingProgram("examples/matrix_factorization/matrix_factorization",
                        flags) {}
};

// An empty directory.
std::string NewDirectory(const std::string& name) {
  const std::string path = TemporaryPath(name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  return path;
}

// Waits until there is a checkpoint after `epochs`; false after a minute.
bool WaitForEpochs(const std::string& directory, int64_t epochs) {
  return tests::WaitForFiles(directory, [&] {
    const auto checkpoint = ps::ReadCheckpoint(directory);
    return checkpoint.ok() && checkpoint->epochs >= epochs;
  });
}

class ProcessesTest : public testing::TestWithParam<std::vector<std::string>> {
};

TEST_P(ProcessesTest, RmseIsCloseToTheNoise) {
  MatrixFactorization program(GetParam());
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_EQ(result["example"], "matrix_factorization");
  EXPECT_NEAR(result["best_rmse"], 0.5, 0.01);
  EXPECT_LT(result["test_rmse"], 1.08 * result["best_rmse"].get<double>());
  EXPECT_GE(result["test_rmse"], result["best_rmse"]);
  EXPECT_EQ(result["epochs"], 3);
  EXPECT_EQ(result["samples"], 3 * 180'000);
  EXPECT_GT(result["samples_per_s"], 0);
  EXPECT_THAT(program.Errors(), HasSubstr("epoch 3/3"));
  EXPECT_TRUE(program.Processes().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Counts, ProcessesTest,
    testing::Values(std::vector<std::string>{"--local"},
                    std::vector<std::string>{"--servers=1", "--trainers=1"},
                    std::vector<std::string>{"--servers=2", "--trainers=2"},
                    std::vector<std::string>{"--servers=2",
                                             "--consistency=bounded:4"},
                    std::vector<std::string>{"--consistency=sync"}));

TEST(MatrixFactorizationTest, SynchronousRunsAreEqualOnAnyNumberOfServers) {
  std::vector<double> results;
  for (const char* servers : {"--servers=1", "--servers=2"}) {
    MatrixFactorization program(
        {servers, "--trainers=3", "--consistency=sync", "--epochs=1"});
    const nlohmann::json result = program.Result();
    ASSERT_TRUE(result.is_object()) << program.Output();
    results.push_back(result["test_rmse"]);
  }
  EXPECT_EQ(results[0], results[1]);
}

// Writes 60,000 ratings, with noise of 0.5, of 100 items by 200 users.
std::string WriteRatings() {
  std::string path = TemporaryPath("ratings.dat");
  data::SyntheticRatings ratings(
      {.num_samples = 60'000, .num_users = 200, .num_items = 100});
  data::Samples samples;
  while (*ratings.Next(&samples)) continue;
  std::ofstream file(path);
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    file << "user" << samples.keys[2 * i] << "::" << samples.keys[2 * i + 1]
         << "::" << samples.labels[i] << "::978300760\n";
  }
  return path;
}

TEST(MatrixFactorizationTest, ResumesOnOtherNumbersOfProcesses) {
  const std::string directory = NewDirectory("mf_resume");
  const std::string data = absl::StrCat("--data=", WriteRatings());
  const std::string snapshots = absl::StrCat("--snapshots=", directory);
  const std::string batch = "--batch_size=20000";
  MatrixFactorization first({data, snapshots, batch, "--epochs=20"});
  const nlohmann::json before = first.Result();
  ASSERT_TRUE(before.is_object()) << first.Output();
  EXPECT_LT(before["test_rmse"], 0.56);
  EXPECT_FALSE(before.contains("best_rmse"));
  EXPECT_EQ(before["samples"], 20 * 54'000);
  EXPECT_TRUE(std::filesystem::exists(absl::StrCat(directory, "/epoch-20")));
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(directory, "/epoch-19")));

  // One epoch from the begin on does not reach this.
  MatrixFactorization second({data, snapshots, batch, "--epochs=21", "--resume",
                              "--servers=2", "--trainers=3"});
  const nlohmann::json after = second.Result();
  ASSERT_TRUE(after.is_object()) << second.Output();
  EXPECT_LT(after["test_rmse"], 0.56);
  EXPECT_EQ(after["epochs"], 21);
  EXPECT_EQ(after["samples"], 21 * 54'000);
  EXPECT_THAT(second.Errors(),
              AllOf(HasSubstr("epoch 21/21"), Not(HasSubstr("epoch 1/21"))));

  for (const auto& [flags, error] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "go on from it with --resume"},
           {{"--resume", "--epochs=21"}, "has 21 already"},
           {{"--resume", "--epochs=22", "--factors=3"},
            "of the snapshot 'epoch-21' has another width"}}) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {data, snapshots});
    MatrixFactorization refused(all);
    EXPECT_EQ(refused.Wait(), 1);
    EXPECT_THAT(refused.Errors(), HasSubstr(error));
  }
}

TEST(MatrixFactorizationTest, ResumesAfterAServerWasKilled) {
  const std::string directory = NewDirectory("mf_killed");
  const std::string snapshots = absl::StrCat("--snapshots=", directory);
  MatrixFactorization program({snapshots, "--epochs=100000"});
  ASSERT_TRUE(WaitForEpochs(directory, 2)) << program.Errors();
  const auto servers = program.Processes("--role=server");
  ASSERT_EQ(servers.size(), 1u);
  ASSERT_EQ(kill(servers[0], SIGKILL), 0);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(), HasSubstr("server0 was killed by signal 9"));

  const auto checkpoint = ps::ReadCheckpoint(directory);
  ASSERT_THAT(checkpoint, async::IsOk());
  EXPECT_GE(checkpoint->epochs, 2);
  MatrixFactorization resumed(
      {snapshots, "--resume",
       absl::StrCat("--epochs=", checkpoint->epochs + 1)});
  const nlohmann::json result = resumed.Result();
  ASSERT_TRUE(result.is_object()) << resumed.Output();
  EXPECT_EQ(result["samples"], (checkpoint->epochs + 1) * 180'000);
  EXPECT_LT(result["test_rmse"], 0.55);
}

TEST(MatrixFactorizationTest, HelpShowsTheFlags) {
  MatrixFactorization program({"--help"});
  EXPECT_EQ(program.Wait(), 0);
  for (const char* text : {"--factors=16", "--epochs=3", "--index=0",
                           "test_rmse", "samples_per_s"}) {
    EXPECT_THAT(program.Output(), HasSubstr(text));
  }
}

struct BadInput {
  const char* name;
  std::vector<std::string> flags;
  std::string error;
};

std::vector<BadInput> BadInputs() {
  return {
      {"Servers", {"--servers=0"}, "--servers=0: must be 1 or greater"},
      {"Factors", {"--factors=0"}, "--factors=0: must be 1 or greater"},
      {"TestEvery", {"--test_every=1"}, "--test_every=1: must be 2 or greater"},
      {"Consistency",
       {"--consistency=bounded:x"},
       "--consistency=bounded:x: must be async, sync, or bounded:N"},
      {"Resume", {"--resume"}, "--resume needs --snapshots"},
      {"NoCheckpoint",
       {"--resume", absl::StrCat("--snapshots=", testing::TempDir(), "/none")},
       "/none/checkpoint.json"},
      {"UnknownRule", {"--optimizer=Foo(lr=1)"}, "--optimizer=Foo(lr=1): "},
      {"L2", {"--l2=-1"}, "--l2=-1: must be 0 or greater"},
      {"TestData", {"--test_data=x"}, "--test_data needs --data"},
      {"NoFile", {"--data=/no/such/file"}, "/no/such/file"},
      {"Empty", {DataFlag("empty", "")}, "there are 0 samples"},
      {"Rating", {DataFlag("bad", "1,2,3\n1,2,x\n")}, "bad:2: rating: \"x\""},
      {"Argument", {"more"}, "unexpected argument more"},
  };
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsReportedOnceBeforeProcessesStart) {
  MatrixFactorization(GetParam().flags).ExpectError(GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, testing::ValuesIn(BadInputs()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace hawser::examples::matrix_factorization
