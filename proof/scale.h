#ifndef PROOF_SCALE_H_
#define PROOF_SCALE_H_
#include <cstddef>
#include <string>
// Returns an error text or empty.
std::string ScaleOnDevice(float* host, std::size_t count, float factor);
#endif
