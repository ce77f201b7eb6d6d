#include "nn/module_file.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "tensor/io/safetensors.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Linear> NewLinear(uint64_t seed, int64_t out_features = 3) {
  tensor::Generator generator(seed);
  return *Linear::Create({.in_features = 2, .out_features = out_features},
                         generator);
}

std::string Path(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

TEST(ModuleFileTest, SavedModuleRoundTrips) {
  const std::string path = Path("linear.safetensors");
  const auto saved = NewLinear(1);
  ASSERT_THAT(SaveModule(*saved, path), IsOk());
  const auto loaded = NewLinear(2);
  ASSERT_NE(loaded->parameters()[0].ToVector<float>(),
            saved->parameters()[0].ToVector<float>());
  ASSERT_THAT(LoadModule(*loaded, path), IsOk());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(loaded->parameters()[i].ToVector<float>(),
              saved->parameters()[i].ToVector<float>());
  }
}

TEST(ModuleFileTest, ErrorNamesTheFileAndTheTensors) {
  const std::string path = Path("other.safetensors");
  ASSERT_THAT(tensor::SaveSafetensors(
                  path, {.tensors = {{"weight", Tensor::Zeros({3, 2})},
                                     {"gain", Tensor::Zeros({3})}},
                         .metadata = {}}),
              IsOk());
  const auto module = NewLinear(1);
  const std::vector<float> before = module->parameters()[0].ToVector<float>();
  EXPECT_THAT(LoadModule(*module, path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("bias is missing"),
                             HasSubstr("gain is unexpected"))));
  EXPECT_EQ(module->parameters()[0].ToVector<float>(), before);
}

TEST(ModuleFileTest, MissingFileIsNotFound) {
  const auto module = NewLinear(1);
  EXPECT_THAT(LoadModule(*module, Path("there_is_none")),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hawser::nn
