// Tests that run the example as a user does, in several processes.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/random_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/training/training_program.h"

namespace hawser::examples::ctr {
namespace {

using ::testing::HasSubstr;
using tests::DataFlag;
using tests::TemporaryPath;

class Ctr : public tests::TrainingProgram {
 public:
  explicit Ctr(const std::vector<std::string>& flags)
      : TrainingProgram("examples/ctr/ctr", flags) {}
};

class ProcessesTest : public testing::TestWithParam<std::vector<std::string>> {
};

TEST_P(ProcessesTest, AucIsCloseToTheBest) {
  Ctr program(GetParam());
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_EQ(result["example"], "ctr");
  EXPECT_NEAR(result["best_auc"], 0.864, 0.001);
  EXPECT_GT(result["test_auc"], result["best_auc"].get<double>() - 0.015);
  EXPECT_LE(result["test_auc"], result["best_auc"]);
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

// It cannot learn the products of pairs as fast.
TEST(CtrTest, WideAndDeepLearnsAsWell) {
  Ctr program({"--model=wide_deep", "--epochs=2"});
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_GT(result["test_auc"], 0.77);
}

// Rows of which C1 and I1 say which are clicks.
std::string WriteCsv(const std::string& name, uint64_t seed) {
  const std::string path = TemporaryPath(name);
  std::ofstream file(path);
  file << "label,I1,I2,C1,C2\n";
  async::RandomSource random(seed);
  for (int i = 0; i < 4000; ++i) {
    const uint64_t number = random.Below(10);
    const uint64_t category = random.Below(10);
    file << (number + category >= 9 ? 1 : 0) << "," << number << ",,\"c"
         << category << ",\"," << random.Below(5) << "\n";
  }
  return path;
}

TEST(CtrTest, ResumesOnOtherNumbersOfProcesses) {
  const std::string directory = TemporaryPath("ctr_resume");
  std::filesystem::remove_all(directory);
  const std::string snapshots = absl::StrCat("--snapshots=", directory);
  const std::string data = absl::StrCat("--data=", WriteCsv("all.csv", 1));
  Ctr first({data, snapshots, "--epochs=40", "--batch_size=256"});
  const nlohmann::json before = first.Result();
  ASSERT_TRUE(before.is_object()) << first.Output();
  EXPECT_EQ(before["samples"], 40 * 3600);
  EXPECT_GT(before["test_auc"], 0.97);

  // One epoch from the begin on does not reach this.
  Ctr second({data, snapshots, "--epochs=41", "--batch_size=256", "--resume",
              "--servers=3", "--trainers=1"});
  const nlohmann::json after = second.Result();
  ASSERT_TRUE(after.is_object()) << second.Output();
  EXPECT_EQ(after["epochs"], 41);
  EXPECT_EQ(after["samples"], 41 * 3600);
  EXPECT_GT(after["test_auc"], 0.97);

  Ctr other({data, snapshots, "--resume", "--epochs=42", "--hidden=7"});
  EXPECT_EQ(other.Wait(), 1);
  EXPECT_THAT(other.Errors(), HasSubstr("dense"));
}

TEST(CtrTest, FilesInCriteosForm) {
  const std::string data = absl::StrCat("--data=", WriteCsv("train.csv", 1));
  Ctr program({data, absl::StrCat("--test_data=", WriteCsv("test.csv", 2)),
               "--epochs=8", "--batch_size=64"});
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_GT(result["test_auc"], 0.98);
  EXPECT_EQ(result["samples"], 8 * 4000);
  EXPECT_FALSE(result.contains("best_auc"));

  Ctr local({data, "--local", "--model=wide_deep", "--epochs=8",
             "--batch_size=64", "--test_every=4"});
  const nlohmann::json local_result = local.Result();
  ASSERT_TRUE(local_result.is_object()) << local.Output();
  EXPECT_GT(local_result["test_auc"], 0.98);
  EXPECT_EQ(local_result["samples"], 8 * 3000);
}

TEST(CtrTest, AKilledServerIsNamedByAllOthers) {
  Ctr program({"--servers=2", "--epochs=10000", "--notice_period=60s"});
  ASSERT_TRUE(program.WaitForError("epoch 1/10000")) << program.Errors();
  const auto victims = program.Processes("--role=server --index=0");
  ASSERT_EQ(victims.size(), 1u);
  ASSERT_EQ(kill(victims[0], SIGKILL), 0);
  // Before look-ups end at their timeout of 60 s.
  EXPECT_EQ(program.Wait(std::chrono::seconds(40)), 1);
  const std::string errors = program.Errors();
  for (const char* name : {"server1", "trainer0", "trainer1"}) {
    EXPECT_THAT(errors,
                HasSubstr(absl::StrCat("ctr ", name, ": lost worker server0")));
  }
  EXPECT_TRUE(program.Processes().empty());
}

TEST(CtrTest, Mushrooms) {
  const char* directory = std::getenv("HAWSER_AGARICUS_DIR");
  if (directory == nullptr) {
    GTEST_SKIP() << "HAWSER_AGARICUS_DIR does not name the directory of "
                    "agaricus.train.libsvm and agaricus.test.libsvm";
  }
  Ctr program({"--format=libsvm",
               absl::StrCat("--data=", directory, "/agaricus.train.libsvm"),
               absl::StrCat("--test_data=", directory, "/agaricus.test.libsvm"),
               "--servers=2", "--batch_size=64"});
  const nlohmann::json result = program.Result();
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_GT(result["test_auc"], 0.999);
}

TEST(CtrTest, HelpShowsTheFlags) {
  Ctr program({"--help"});
  EXPECT_EQ(program.Wait(), 0);
  for (const char* text : {"--model=deepfm", "--hidden=64,32", "--epochs=3",
                           "--index=0", "test_auc", "samples_per_s"}) {
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
      {"Model", {"--model=x"}, "--model=x: must be deepfm or wide_deep"},
      {"Format", {"--format=x"}, "--format=x: must be csv or libsvm"},
      {"Hidden", {"--hidden=8,x"}, "--hidden: 'x' must be a number"},
      {"Width",
       {"--embedding_width=0"},
       "--embedding_width=0: must be 1 or greater"},
      {"TooWide", {"--embedding_width=65537"}, "65537"},
      {"Rule", {"--deep_optimizer=Foo"}, "--deep_optimizer=Foo: "},
      {"TestData", {"--test_data=x"}, "--test_data needs --data"},
      {"NoFile", {"--data=/no/such/file"}, "/no/such/file"},
      {"Empty", {DataFlag("empty.csv", "")}, "empty.csv: the file is empty"},
      {"NoSamples", {DataFlag("none.csv", "label,C1\n")}, "there are 0 samp"},
      {"NoKeys",
       {DataFlag("keys.csv", "label,I1\n1,1\n")},
       "the samples have no keys"},
      {"Field",
       {DataFlag("bad.csv", "label,I1,C1\n1,1,a\n0,x,b\n")},
       "bad.csv:3: column 2 (\"I1\"): \"x\" is not a number"},
      {"Libsvm",
       {"--format=libsvm", DataFlag("bad.libsvm", "1 1:1\n0 1\n")},
       "bad.libsvm:2: feature \"1\": must be key:value"},
      {"OtherColumns",
       {DataFlag("one.csv", "label,C1\n1,a\n0,b\n1,a\n0,b\n"),
        absl::StrCat("--test_data=", WriteCsv("two.csv", 1))},
       "the test samples have 2 numbers and 2 keys, those for training 0 and "
       "1"},
  };
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsReportedOnceBeforeProcessesStart) {
  Ctr(GetParam().flags).ExpectError(GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, testing::ValuesIn(BadInputs()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace hawser::examples::ctr
