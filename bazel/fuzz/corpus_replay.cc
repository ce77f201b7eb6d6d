#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

namespace {

void RunInput(const std::vector<uint8_t>& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

std::vector<uint8_t> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

// Every prefix, and copies with a few bytes replaced: what a decoder meets
// when a message is cut off or corrupted.
void RunVariants(const std::vector<uint8_t>& seed) {
  constexpr size_t kPrefixes = 256;
  constexpr int kCorruptions = 200;
  std::minstd_rand random(static_cast<uint32_t>(seed.size()) + 1);
  const size_t step = seed.size() / kPrefixes + 1;
  for (size_t length = 0; length < seed.size(); length += step) {
    RunInput(
        {seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  if (seed.empty()) return;
  for (int i = 0; i < kCorruptions; ++i) {
    std::vector<uint8_t> corrupted = seed;
    for (int j = 0; j <= i % 4; ++j) {
      corrupted[random() % corrupted.size()] = static_cast<uint8_t>(random());
    }
    RunInput(corrupted);
  }
}

}  // namespace

// Runs the fuzz target over the files named on the command line and over
// variants of them. Stands in for libFuzzer where there is none.
int main(int argc, char** argv) {
  int seeds = 0;
  RunInput({});
  for (int i = 1; i < argc; ++i) {
    const std::vector<uint8_t> seed = ReadFile(argv[i]);
    RunInput(seed);
    RunVariants(seed);
    ++seeds;
  }
  std::printf("replayed %d seeds and their variants\n", seeds);
  return 0;
}
