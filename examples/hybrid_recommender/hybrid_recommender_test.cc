// Tests that run the example as a user does, in several processes.

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/training/training_program.h"

namespace hawser::examples::hybrid_recommender {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class HybridRecommender : public tests::TrainingProgram {
 public:
  explicit HybridRecommender(const std::vector<std::string>& flags)
      : TrainingProgram("examples/hybrid_recommender/hybrid_recommender",
                        flags) {}
};

class ProcessesTest : public testing::TestWithParam<std::vector<std::string>> {
};

TEST_P(ProcessesTest, ModelLearns) {
  std::vector<std::string> flags = GetParam();
  flags.insert(flags.end(), {"--samples=60000", "--epochs=3"});
  HybridRecommender program(flags);
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_EQ(result["example"], "hybrid_recommender");
  EXPECT_NEAR(result["best_auc"], 0.865, 0.005);
  // 0.70 without training of the rows, and 0.75 without that of the layers.
  EXPECT_GT(result["test_auc"], 0.785);
  EXPECT_LE(result["test_auc"], result["best_auc"]);
  EXPECT_EQ(result["epochs"], 3);
  EXPECT_EQ(result["samples"], 3 * 54000);
  EXPECT_GT(result["samples_per_s"], 0);
  EXPECT_THAT(program.Errors(), HasSubstr("epoch 3/3"));
  EXPECT_TRUE(program.Processes().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Counts, ProcessesTest,
    testing::Values(std::vector<std::string>{"--servers=1", "--trainers=1"},
                    std::vector<std::string>{},
                    std::vector<std::string>{"--servers=2", "--trainers=3"}));

class DeathTest : public testing::TestWithParam<std::string> {};

TEST_P(DeathTest, OtherProcessesEndAndNameTheDeadOne) {
  HybridRecommender program(
      {"--servers=2", "--trainers=2", "--epochs=10000", "--notice_period=60s"});
  ASSERT_TRUE(program.WaitForError("epoch 1/10000")) << program.Errors();
  const std::string role = GetParam().substr(0, GetParam().size() - 1);
  const std::string index = GetParam().substr(GetParam().size() - 1);
  const auto victims =
      program.Processes("--role=" + role + " --index=" + index);
  ASSERT_EQ(victims.size(), 1u);
  ASSERT_EQ(kill(victims[0], SIGKILL), 0);
  // Before look-ups end at their timeout of 60 s.
  EXPECT_EQ(program.Wait(std::chrono::seconds(40)), 1);
  const std::string errors = program.Errors();
  EXPECT_THAT(errors, EndsWith("hybrid_recommender: " + GetParam() +
                               " was killed by signal 9 (Killed)\n"));
  for (const std::string name :
       {"server0", "server1", "trainer0", "trainer1"}) {
    if (name == GetParam()) continue;
    const size_t begin = errors.find("hybrid_recommender " + name + ": ");
    ASSERT_NE(begin, std::string::npos)
        << name << " reported no error: " << errors;
    EXPECT_THAT(errors.substr(begin, errors.find('\n', begin) - begin),
                HasSubstr(GetParam()));
  }
  EXPECT_TRUE(program.Processes().empty());
}

INSTANTIATE_TEST_SUITE_P(Workers, DeathTest,
                         testing::Values("server0", "server1", "trainer0",
                                         "trainer1"),
                         [](const auto& tested) { return tested.param; });

TEST(HybridRecommenderTest, WrongFlagsAreReportedOnce) {
  HybridRecommender({"--trainers=0"})
      .ExpectError("--trainers=0: must be 1 or greater");
  HybridRecommender({"--samples=10"})
      .ExpectError("--samples=10: must be 1004 or greater");
}

TEST(HybridRecommenderTest, HelpShowsTheFlags) {
  HybridRecommender program({"--help"});
  EXPECT_EQ(program.Wait(), 0);
  for (const char* text : {"--layer_lr=0.001", "--trainers=2", "--index=0",
                           "test_auc", "samples_per_s"}) {
    EXPECT_THAT(program.Output(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace hawser::examples::hybrid_recommender
